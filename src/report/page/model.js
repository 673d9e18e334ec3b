// The model as nested blocks, coloured by the worst verdict inside, with the casts that the candidate took; and blame.
const OPEN_BLOCKS = 60; // as many ops are shown at once; larger models open where findings are,
let room = 400;         // until so many are drawn: 5,000 at once would take a second

// "blocks.0.attn/mul.1" lies in blocks, 0, attn.
const partsOf = path => { const [module, ...rest] = path.split('/'); return [...module.split('.').filter(Boolean), ...(rest.length ? [`/${rest.join('/')}`] : [])]; };

function modelTree(ops) {
  const make = name => ({ name, children: new Map(), own: [], ops: 0, counts: {} });
  const root = make('');
  for (const op of ops) {
    const line = [root];
    for (const part of partsOf(op.path)) {
      const here = line[line.length - 1];
      if (!here.children.has(part)) here.children.set(part, make(part));
      line.push(here.children.get(part));
    }
    line[line.length - 1].own.push(op);
    for (const node of line) { node.ops++; node.counts[op.verdict] = (node.counts[op.verdict] ?? 0) + 1; }
  }
  return root;
}

const worstOf = node => ORDER.find(v => node.counts[v] > 0) ?? 'pass';

// A chain of single children is one block: "transformer.h", not a box in a box.
function joined(node) {
  let [name, here] = [node.name, node];
  while (!here.own.length && here.children.size === 1) {
    const child = [...here.children.values()][0];
    name += (child.name.startsWith('/') || !name ? '' : '.') + child.name;
    here = child;
  }
  return { name, here };
}

function opButton(op, select) {
  const change = castChange(op), several = DTYPES.length > 1 ? ` ${op.dtype}` : '';
  return el('button', { type: 'button', class: `block ${tone(op.verdict)}`, title: op.name, onclick: () => select(op, true) },
    el('span', null, `${SIGN[op.verdict]} `, breakable(joinedName(op)), `${op.call > 0 ? ` call ${op.call}` : ''}${several}`), el('small', null, op.kind, op.tensor && op.tensor !== op.kind ? ` · ${op.tensor}` : ''), change ? el('small', { class: 'tag' }, change) : null);
}
const joinedName = op => partsOf(op.path).at(-1) ?? 'result';

function blockOf(node, select, depth, few) {
  const { name, here } = joined(node), verdict = worstOf(here);
  if (!here.children.size) return here.own.map(op => opButton(op, select));
  const inside = el('div', { class: 'blocks' });
  const fill = () => { if (!inside.childElementCount) inside.append(...here.own.map(op => opButton(op, select)), ...[...here.children.values()].flatMap(child => blockOf(child, select, depth + 1, few))); };
  const counts = ORDER.filter(v => here.counts[v] && v !== 'pass').map(v => `${here.counts[v]} ${v}`);
  const drawn = here.own.length + here.children.size, open = few || ((depth < 1 || (verdict !== 'pass' && depth < 6)) && drawn <= room);
  if (open) { room -= drawn; fill(); }
  const made = el('details', { class: `module ${tone(verdict)}`, open, ontoggle: fill },
    el('summary', null, el('strong', null, breakable(name)), el('span', { class: 'soft' }, ` ${plural(here.ops, 'op')}${counts.length ? `, ${counts.join(', ')}` : ', all pass'}`)), inside);
  made.fill = fill;
  return made;
}

function showModel(select) {
  if (!OPS.length) return byId('model').remove();
  const few = OPS.length <= OPEN_BLOCKS, diagrams = [];
  for (const reference of REFERENCES) {
    const tree = modelTree(OPS.filter(op => op.reference === reference));
    const apart = REFERENCES.length > 1 || tree.children.size > room, blocks = el('div', { class: 'blocks top' });
    const fill = () => { if (!blocks.childElementCount) blocks.append(...tree.own.map(op => opButton(op, select)), ...[...tree.children.values()].flatMap(child => blockOf(child, select, REFERENCES.length > 1 ? 1 : 0, few))); };
    if (!apart) fill();
    const box = apart ? el('details', { class: `module ${tone(worstOf(tree))}`, ontoggle: fill }, el('summary', null, el('strong', null, reference || 'all'), el('span', { class: 'soft' }, ` ${plural(tree.ops, 'op')}`)), blocks) : blocks;
    box.fill = fill;
    diagrams.push(box);
  }
  section('model', 'Model', el('p', { class: 'soft' }, 'Modules of the reference, coloured by the worst verdict inside. A tag names how the candidate’s casts differ from the recorded ones.'), ...diagrams);
}

function showBlame(select) {
  const list = OPS.filter(op => isNumber(op.blame)).sort((a, b) => b.blame - a.blame);
  if (!list.length) return byId('blame').remove();
  const most = Math.max(...list.map(op => Math.abs(op.blame)), 1e-12);
  const line = op => el('li', null, el('button', { type: 'button', class: 'link', onclick: () => select(op, true) }, breakable(op.name)), bar(Math.abs(op.blame) / most), el('span', { class: 'number' }, percent(op.blame)));
  const rest = list.slice(20);
  section('blame', 'Blame', el('p', { class: 'soft' }, 'Share of the final error that each op injects: what vanishes when the op alone is replaced by the reference’s.'),
    el('ol', { class: 'bars' }, list.slice(0, 20).map(line)), rest.length ? el('details', null, el('summary', null, plural(rest.length, 'more op')), el('ol', { class: 'bars', start: '21' }, rest.map(line))) : null);
}

function showCoverage() {
  const lists = [['uncovered_paths', 'of the reference without counterpart'], ['unmatched', 'of the candidate without counterpart'], ['not_exercised', 'compared, but showing little'], ['opaque', 'not replayed (recorded values used)']];
  const folded = DATA.coverage.flatMap(c => lists.filter(([name]) => c[name].length).map(([name, what]) =>
    el('details', null, el('summary', null, `${c.reference ? `${c.reference}: ` : ''}${c[name].length} ${what}`), el('ul', { class: 'paths' }, c[name].slice(0, 2000).map(path => el('li', null, code(path || '(the model’s result)')))))));
  section('coverage', 'Coverage and method', el('ul', null, [...DATA.coverage_lines, ...DATA.method].map(line => el('li', null, breakable(line)))), ...folded);
}
