// Pairing by hand: what is left over on both sides, click one of each; the page then offers the map file that says so.
const LISTED = 300; // of a list; the filter finds the rest

class Pairing {
  constructor() {
    const cover = DATA.coverage.length === 1 ? DATA.coverage[0] : null;
    const automatic = new Map(); // reference path -> candidate path
    for (const op of OPS) if (op.path && op.candidate && cover) automatic.set(op.path, op.candidate);
    this.automatic = automatic;
    this.references = new Set(cover?.uncovered_paths ?? []);
    for (const op of OPS) if (cover && op.verdict === 'missing' && op.path && !automatic.has(op.path)) this.references.add(op.path);
    this.candidates = new Set(cover?.unmatched ?? []);
    this.made = new Map();
    this.undone = new Map();
    this.chosen = { reference: null, candidate: null };
    if (!cover || (!automatic.size && !this.references.size) || !(automatic.size || this.candidates.size)) { byId('pairing').remove(); return; }
    this.build();
    this.refresh();
  }

  build() {
    this.lists = {};
    const column = (side, title) => {
      const list = { filter: el('input', { type: 'search', placeholder: 'filter', 'aria-label': `Filter ${title}`, oninput: () => this.refresh() }), items: el('ul', { class: 'picks', 'data-side': side }), note: el('p', { class: 'soft' }) };
      this.lists[side] = list;
      return el('div', null, el('h3', null, title), list.filter, list.items, list.note);
    };
    this.pairs = el('ul', { class: 'pairs' });
    this.existing = el('ul', { class: 'pairs', id: 'paired' });
    this.find = el('input', { type: 'search', placeholder: 'filter', 'aria-label': 'Filter the pairs compared', oninput: () => this.refresh() });
    this.note = el('p', { class: 'soft' });
    this.text = el('textarea', { readonly: true, rows: '4', 'aria-label': 'Map file', spellcheck: 'false' });
    this.download = el('a', { class: 'button', id: 'download-map', download: 'pairs.map' }, 'Download pairs.map');
    section('pairing', 'Pairing by hand',
      el('p', { class: 'soft' }, 'Click one tensor on each side to pair them. Then run again with ', el('code', null, '--map pairs.map'), '.'),
      el('div', { class: 'columns' }, column('reference', 'Reference, unmatched'), column('candidate', 'Candidate, unmatched')),
      el('h3', null, 'Pairs made here'), this.pairs,
      el('div', { class: 'controls' }, this.download), this.text,
      el('details', null, el('summary', null, `${plural(this.automatic.size, 'pair')} compared in this report`), this.find, this.existing, this.note));
  }

  left(side) {
    if (side === 'reference') return [...new Set([...this.references, ...this.undone.keys()])].filter(path => !this.made.has(path));
    const taken = new Set(this.made.values());
    return [...new Set([...this.candidates, ...this.undone.values()])].filter(path => !taken.has(path));
  }

  choose(side, path) {
    this.chosen[side] = this.chosen[side] === path ? null : path;
    const { reference, candidate } = this.chosen;
    if (reference !== null && candidate !== null) {
      this.made.set(reference, candidate);
      this.chosen = { reference: null, candidate: null };
      say(`Paired ${reference} with ${candidate}`);
    }
    this.refresh();
  }

  unpair(path) {
    if (this.made.has(path)) this.made.delete(path);
    else this.undone.set(path, this.automatic.get(path));
    this.refresh();
  }
  again(path) {
    const candidate = this.undone.get(path);
    this.undone.delete(path);
    this.made.delete(path);
    for (const [reference, taken] of this.made) if (taken === candidate) this.made.delete(reference);
    this.refresh();
  }

  // A path that a map file would read otherwise ('*', '{', '#', '=', ' split(…)') cannot stand in one as it is.
  static plainName(path) { return path !== '' && !/[*{}#=\s]/.test(path); }

  map() {
    const lines = ['# Pairs made by hand in report.html: REFERENCE = CANDIDATE [perm(…)] [split(axis,i,n)]'];
    for (const [reference, candidate] of this.made)
      lines.push(Pairing.plainName(reference) && Pairing.plainName(candidate) ? `${reference} = ${candidate}` : `# write by hand, a map reads these names as patterns: ${reference} = ${candidate}`);
    const taken = new Set(this.made.values());
    for (const [reference, candidate] of this.undone)
      if (!this.made.has(reference) && !taken.has(candidate)) lines.push(`# unpaired here, and paired again unless one of the two is given another partner: ${reference} = ${candidate}`);
    return lines.join('\n') + '\n';
  }

  refresh() {
    for (const side of ['reference', 'candidate']) this.fill(side);
    const row = (reference, candidate, text, act) => el('li', null, el('span', null, code(reference), ' = ', code(candidate)), el('button', { type: 'button', class: 'small', 'aria-label': `${text} ${reference}`, onclick: act }, text));
    const made = [...this.made].map(([r, c]) => row(r, c, 'Unpair', () => this.unpair(r)));
    const undone = [...this.undone].filter(([r]) => !this.made.has(r)).map(([r, c]) => { const item = row(r, c, 'Pair again', () => this.again(r)); item.className = 'undone'; return item; });
    this.pairs.replaceChildren(...made, ...undone, ...(made.length + undone.length ? [] : [el('li', { class: 'soft' }, 'none yet')]));
    const wanted = this.find.value.toLowerCase();
    const fits = [...this.automatic].filter(([r, c]) => !this.undone.has(r) && `${r} ${c}`.toLowerCase().includes(wanted));
    this.existing.replaceChildren(...fits.slice(0, LISTED).map(([r, c]) => row(r, c, 'Unpair', () => this.unpair(r))));
    this.note.textContent = fits.length > LISTED ? `The first ${LISTED} of ${fits.length.toLocaleString('en')}; filter for others.` : '';
    this.text.value = this.map();
    this.text.rows = Math.max(4, Math.min(12, this.text.value.split('\n').length));
    if (this.download.href) URL.revokeObjectURL(this.download.href);
    this.download.href = URL.createObjectURL(new Blob([this.text.value], { type: 'text/plain' }));
  }

  fill(side) {
    const { filter, items, note } = this.lists[side], wanted = filter.value.toLowerCase();
    const left = this.left(side), fits = left.filter(path => path.toLowerCase().includes(wanted));
    items.replaceChildren(...fits.slice(0, LISTED).map(path => el('li', null, el('button', { type: 'button', 'aria-pressed': String(this.chosen[side] === path), onclick: () => this.choose(side, path) }, breakable(path || '(the model’s result)')))));
    note.textContent = !left.length ? 'none' : fits.length > LISTED ? `The first ${LISTED} of ${fits.length.toLocaleString('en')}; filter for others.` : '';
  }
}
