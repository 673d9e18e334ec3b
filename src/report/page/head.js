// Verdict and first divergence; then what was compared on which machines, before any number.
function showHead(select) {
  const first = DATA.first === null ? null : OPS[DATA.first];
  const model = DATA.reference.model || DATA.candidate.model;
  const parts = [
    el('div', { class: 'bar' }, el('h1', null, model ? `Parity report: ${model}` : 'Parity report'),
      el('div', { class: 'tools' },
        el('button', { type: 'button', id: 'keys', 'aria-expanded': 'false', 'aria-controls': 'help' }, 'Keys'),
        el('button', { type: 'button', id: 'theme' }, 'Dark'))),
    help(),
    el('p', { class: `verdict ${tone(DATA.verdict)}` }, `${SIGN[DATA.verdict] ?? ''} ${DATA.headline}`),
    first && el('div', { class: 'finding' },
      el('p', null, el('strong', null, DATA.sentence)),
      first.diagnosis && el('p', null, first.diagnosis),
      sources(first),
      el('button', { type: 'button', id: 'to-first', onclick: () => select(first, true) }, 'Show this op')),
    el('ul', { class: 'tiles', 'aria-label': 'Verdicts' }, ORDER.filter(v => DATA.counts[v] > 0).map(v =>
      el('li', null, el('b', { class: tone(v) }, `${SIGN[v]} ${DATA.counts[v].toLocaleString('en')}`), el('span', null, v)))),
  ];
  byId('head').replaceChildren(...parts.filter(Boolean));
  byId('foot').replaceChildren(el('p', null, el('code', null, DATA.command)),
    el('p', null, [DATA.date, DATA.seconds === null ? null : `${digits(DATA.seconds)} s`, `parity-check ${DATA.version}`, 'drawn with Chart.js (MIT licence)']
      .filter(Boolean).join(' · ')));
}

function help() {
  const keys = [['n / p', 'next / previous finding'], ['j / k', 'next / previous row of the table'], ['/', 'filter by path'], ['t', 'light or dark'],
    ['← →', 'in the chart: op by op'], ['+ − 0', 'in the chart: closer, wider, all'], ['?', 'these keys']];
  return el('dl', { id: 'help', class: 'keys', hidden: true }, keys.map(([key, what]) => [el('dt', null, el('kbd', null, key)), el('dd', null, what)]));
}

// "reference a.py:12 · candidate b.cpp:88", as far as recorded.
function sources(op) {
  const parts = [['reference', op.source], ['candidate', op.candidateSource]].filter(([, where]) => where);
  return parts.length ? el('p', { class: 'sources' }, parts.map(([side, where], i) => [i ? ' · ' : '', `${side} `, code(where)])) : null;
}

const SHOWN_FIRST = ['path', 'model', 'producer', 'code', 'torch', 'libtorch', 'jax', 'python', 'cpu', 'cpu_capability', 'cpu_flags', 'device', 'gpu', 'cuda',
  'cudnn', 'threads', 'precision', 'tf32', 'deterministic', 'attention', 'autocast', 'seed', 'variant', 'environment', 'mkldnn', 'sha256'];
const NOT_A_DIFFERENCE = new Set(['path', 'sha256', 'command', 'time', 'producer', 'name']);

// Nested settings become "autocast.dtype"; lists one text.
function flat(from, prefix, out) {
  for (const [key, value] of Object.entries(from ?? {})) {
    const name = prefix ? `${prefix}.${key}` : key;
    if (key === 'dumps' || key === 'models') continue;
    if (Array.isArray(value)) out[name] = value.map(x => (typeof x === 'object' ? JSON.stringify(x) : String(x))).join(' ');
    else if (value !== null && typeof value === 'object') flat(value, name, out);
    else if (value !== null && value !== '') out[name] = String(value);
  }
  return out;
}

const factsOf = side => flat(side.details, '', flat({ path: side.path, model: side.model, producer: side.producer, sha256: side.sha256 }, '', {}));
const rank = key => { const i = SHOWN_FIRST.findIndex(k => key === k || key.startsWith(k)); return i < 0 ? SHOWN_FIRST.length : i; };

function environmentRows() {
  const reference = factsOf(DATA.reference), candidate = factsOf(DATA.candidate), machine = flat(DATA.machine, '', {});
  const keys = [...new Set([...Object.keys(reference), ...Object.keys(candidate), ...Object.keys(machine)])];
  return keys.map(key => {
    const r = reference[key], c = candidate[key];
    const words = x => x.split(/[ ,]+/).sort().join(' ');
    const differs = r !== undefined && c !== undefined && words(r) !== words(c) && !NOT_A_DIFFERENCE.has(key);
    return { key, r, c, m: machine[key], differs };
  }).sort((a, b) => rank(a.key) - rank(b.key) || (a.key < b.key ? -1 : 1));
}

function environmentTable(rows) {
  const cell = (text, other) => (text === undefined ? '–' : wordsApart(text, other));
  const shown = rows.map(({ key, r, c, m, differs }) => {
    const line = [el('span', null, breakable(key.replaceAll('_', ' ')), differs && el('em', { class: 'differs' }, 'differs')), cell(r, differs ? c : null), cell(c, differs ? r : null), cell(m, null)];
    line.look = differs ? 'different' : null;
    return line;
  });
  return table(['', 'reference', 'candidate', 'compared on'], shown, { class: 'environment', label: 'Environment of both sides' });
}

// In lists of words (CPU flags) what one side alone has is marked.
function wordsApart(text, other) {
  const parts = text.split(' ');
  if (other === null || other === undefined || parts.length < 4) return el('span', null, breakable(text));
  const there = new Set(other.split(' '));
  return el('span', null, parts.flatMap((w, i) => [i ? ' ' : '', there.has(w) ? w : el('mark', null, w)]));
}

function showEnvironment() {
  const rows = environmentRows(), main = rows.filter(r => rank(r.key) < SHOWN_FIRST.length || (r.differs && !r.key.startsWith('config')));
  const rest = rows.filter(r => !main.includes(r));
  const different = rows.filter(r => r.differs);
  const dumps = DATA.reference.details?.dumps ?? [];
  section('environment', 'Environment',
    el('p', null, different.length ? `The two sides differ in ${different.map(r => r.key.replaceAll('_', ' ')).slice(0, 12).join(', ')}${different.length > 12 ? ' and more' : ''}.`
      : 'Nothing that both sides recorded differs.'),
    environmentTable(main),
    dumps.length ? el('details', null, el('summary', null, plural(dumps.length, 'recording')),
      table(['recording', 'model', 'code', 'producer'], dumps.map(d => [code(d.name ?? ''), d.model ?? '', d.code ?? '', d.producer ?? '']), { label: 'Recordings' })) : null,
    rest.length ? el('details', null, el('summary', null, `${plural(rest.length, 'more setting')}`), environmentTable(rest)) : null,
    ...DATA.warnings.map(w => el('p', { class: 'warning' }, `⚠ ${w}`)));
}
