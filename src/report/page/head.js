// Verdict and first divergence; then what was compared on which machines, before any number.
function showHead(select) {
  const first = DATA.first === null ? null : OPS[DATA.first];
  const model = DATA.models[0] || DATA.models[1];
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
    el('ul', { class: 'tiles', 'aria-label': 'Verdicts' }, ORDER.filter(v => COUNTS[v] > 0).map(v =>
      el('li', null, el('b', { class: tone(v) }, `${SIGN[v]} ${COUNTS[v].toLocaleString('en')}`), el('span', null, v)))),
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

// What lies behind the numbers: the table that report.md has, both machines side by side, what differs marked.
function environmentTable(rows) {
  const shown = rows.map(([what, values, differs]) => {
    const line = [el('span', null, breakable(what.replaceAll('_', ' ')), differs && el('em', { class: 'differs' }, 'differs')), ...values.map((text, i) => (text ? wordsApart(text, differs ? values.filter((other, k) => k !== i && other) : []) : el('span', { class: 'unknown' }, '–')))];
    line.look = differs ? 'different' : null;
    return line;
  });
  return table(['', ...DATA.environment.columns], shown, { class: 'environment', label: 'Environment of both sides' });
}

// In lists of words (CPU flags) what is not on every side is marked.
function wordsApart(text, others) {
  const parts = text.split(' ');
  if (!others.length || parts.length < 4) return el('span', null, breakable(text));
  const there = others.map(other => new Set(other.split(' ')));
  return el('span', null, parts.flatMap((w, i) => [i ? ' ' : '', there.every(words => words.has(w)) ? w : el('mark', null, w)]));
}

function showEnvironment() {
  const { differing, sides, rows, others, recordings } = DATA.environment, apart = others.filter(([, , differs]) => differs);
  const rest = others.filter(row => !apart.includes(row));
  section('environment', 'Environment',
    el('p', null, differing ? [el('strong', { class: 'note' }, 'The machines differ: '), `${differing}.`] : 'Nothing that is known of more than one machine differs.'),
    environmentTable([...sides, ...rows, ...apart]),
    recordings.length ? el('details', null, el('summary', null, plural(recordings.length, 'recording')),
      table(['recording', 'model', 'code', 'producer'], recordings.map(([name, ...facts]) => [code(name), ...facts]), { label: 'Recordings' })) : null,
    rest.length ? el('details', null, el('summary', null, `${plural(rest.length, 'more setting')}`), environmentTable(rest)) : null,
    ...DATA.warnings.map(w => el('p', { class: 'warning' }, `⚠ ${w}`)));
}
