// One op in full: what is wrong, numbers against their limits, where the differences are, what explains them.
const NUMBERS = [['rel_l2', 'relative L2'], ['max_abs', 'max |d|'], ['mean_abs', 'mean |d|'], ['rmse', 'RMSE'], ['p95_abs', 'p95 |d|'], ['p99_abs', 'p99 |d|'],
  ['normalized_max', 'max |d| / mean |r|'], ['cosine', 'cosine'], ['max_ulp', 'max ULP'], ['bitwise_equal_share', 'bitwise equal'], ['gain', 'gain'],
  ['ratio', 'R (error / reference’s error)'], ['correlation', 'ρ of the errors'], ['reference_error', 'reference’s error'], ['candidate_error', 'candidate’s error'],
  ['nan_reference', 'non-finite, reference'], ['nan_candidate', 'non-finite, candidate'], ['special_mismatch', 'finite on one side alone'], ['zeros_reference', 'zeros, reference'], ['count', 'elements']];

const shownNumber = (name, x) => (name === 'bitwise_equal_share' ? percent(x) : name === 'cosine' ? digits(x, 8) : digits(x));

function numbersTable(op) {
  const rows = NUMBERS.filter(([name]) => (op.forced[name] ?? op.free[name] ?? null) !== null)
    .map(([name, title]) => [title, shownNumber(name, op.forced[name] ?? null), shownNumber(name, op.free[name] ?? null)]);
  for (const [title, x] of [['amplification of input errors', op.amplification], ['free-running rel. L2 expected', op.predicted], ['share of the final error (blame)', op.blame === null ? null : percent(op.blame)]])
    if (x !== null) rows.push([title, '', isNumber(x) ? digits(x) : x]);
  if (op.logic !== null) rows.unshift(['fp64 logic, relative L2', digits(op.logic), '']);
  return rows.length ? el('div', null, el('h4', null, 'Numbers'), table(['', 'forced', 'free-running'], rows, { numbers: [1, 2], label: 'Numbers of this op' })) : null;
}

function limitsTable(op) {
  const limits = [...op.limits];
  if (op.logicLimit !== null) limits.unshift({ statistic: 'fp64 logic', value: op.logicLimit, atLeast: false, measured: op.logic, origin: 'gate logic' });
  if (!limits.length) return null;
  const rows = limits.map(l => {
    const share = used(l), show = x => (l.statistic.endsWith('bitwise_equal_share') ? percent(x) : digits(x));
    const row = [breakableSpan(l.statistic), show(l.measured), `${l.atLeast ? '≥' : '≤'} ${show(l.value)}`, share === null ? '–' : digits(share), el('span', { class: 'origin' }, l.origin)];
    row.look = share > 1 ? 'outside' : null;
    return row;
  });
  return el('div', null, el('h4', null, 'Limits'), table(['statistic', 'measured', 'limit', 'used', 'origin'], rows, { numbers: [1, 2, 3], class: 'limits', label: 'Limits and their origin' }));
}
const breakableSpan = text => el('span', null, breakable(text));

function worstTable(op) {
  if (!op.worst.length) return null;
  const number = x => (isNumber(x) ? String(x) : x);
  const rows = op.worst.map(([index, r, c]) => [`[${index.join(', ')}]`, number(r), bitsText(r, op.tensor), number(c), bitsText(c, op.tensor), isNumber(r) && isNumber(c) ? digits(c - r) : '–']);
  return el('div', null, el('h4', null, 'Worst elements'), fewer(op.worst),
    table(['index', 'reference', 'bits', 'candidate', 'bits', 'd'], rows, { numbers: [1, 3, 5], class: 'worst', label: 'Worst elements' }));
}

function explanationsTable(op) {
  if (!op.explanations.length) return null;
  const rows = op.explanations.map(e => [el('span', null, el('strong', null, e.fault), e.detail && el('span', { class: 'origin' }, ` ${e.detail}`)), e.gate || '–', digits(e.z), percent(Math.max(e.explained, 0)), digits(e.amplitude), digits(e.detectable)]);
  return el('div', null, el('h4', null, 'Explanations tried, the best first'),
    fewer(op.explanations),
    table(['named change', 'gate', 'z', 'explains', 'amplitude', 'detectable from'], rows, { numbers: [2, 3, 4, 5], class: 'explanations', label: 'Explanations' }));
}

// Pages of very many findings hold less of each.
const fewer = list => (DATA.most < 8 && list.length === DATA.most ? el('p', { class: 'soft' }, `The first ${plural(list.length, 'line')}; report.json has the rest.`) : null);

let histogramChart = null, waitingHistogram = null; // drawn in the next frame, or at once for paper
function drawHistogram() { waitingHistogram?.(); waitingHistogram = null; }
function histogramPart(op) {
  histogramChart?.destroy();
  histogramChart = waitingHistogram = null;
  if (!op.histogram) return null;
  const [equal, lowest, ...counts] = op.histogram, all = counts.reduce((a, b) => a + b, equal);
  const text = `${plural(equal, 'element')} of ${all.toLocaleString('en')} equal (${percent(all ? equal / all : null)})`;
  if (!counts.length) return el('div', null, el('h4', null, 'Differences'), el('p', null, `${text}.`));
  const canvas = el('canvas', { role: 'img', 'aria-label': `Histogram of the differences: ${counts.map((n, i) => `2^${lowest + i}: ${n}`).join(', ')}` });
  waitingHistogram = () => { if (canvas.isConnected) histogramChart = new Chart(canvas, histogramOptions(lowest, counts)); };
  requestAnimationFrame(drawHistogram);
  return el('div', null, el('h4', null, 'Histogram of differences'), el('div', { class: 'canvas low' }, canvas), el('p', { class: 'soft' }, `${text}. |d| in units of the reference’s root mean square.`));
}

function histogramOptions(lowest, counts) {
  const ink = colour('soft');
  return {
    type: 'bar',
    data: { labels: counts.map((_, i) => `2^${lowest + i}`), datasets: [{ data: counts, backgroundColor: colour('accent'), categoryPercentage: 1, barPercentage: .92 }] },
    options: {
      animation: false, maintainAspectRatio: false,
      scales: { x: { grid: { display: false }, ticks: { color: ink, maxRotation: 0, autoSkipPadding: 12 }, title: { display: true, text: '|d| / rms(reference)', color: ink } }, y: { grid: { color: colour('line') }, ticks: { color: ink, precision: 0, maxTicksLimit: 5 }, title: { display: true, text: 'elements', color: ink } } },
      plugins: { legend: { display: false }, tooltip: { displayColors: false, callbacks: { title: items => `${items[0].label} to 2^${lowest + items[0].dataIndex + 1}`, label: item => plural(item.raw, 'element') } } },
    },
  };
}

function rerunPart(op) {
  return op.rerun ? el('div', null, el('h4', null, 'Again'), el('div', { class: 'command' }, el('code', null, op.rerun), copyButton(op.rerun))) : null;
}

// Fills `place`; `steps`: {previous, next} findings, null where there is none.
function showOp(place, op, steps, select) {
  const to = (target, text, key) => el('button', { type: 'button', class: 'small', disabled: !target, 'aria-keyshortcuts': key, onclick: () => select(target, true) }, text);
  place.replaceChildren(
    el('div', { class: 'bar' }, el('h3', { tabindex: '-1' }, breakable(op.name)), badge(op.verdict)),
    el('div', { class: 'controls' }, to(steps.previous, '‹ previous finding (p)', 'p'), to(steps.next, 'next finding (n) ›', 'n')),
    el('p', { class: 'soft' }, [op.kind, op.shape, op.tensor && op.tensor !== op.dtype ? `${op.dtype} run, ${op.tensor} tensor` : op.dtype, op.gate && `gate ${op.gate}`, op.reference].filter(Boolean).join(' · ')),
    ...[op.candidate && op.candidate !== op.path ? el('p', null, 'candidate ', code(op.candidate), op.pairing ? `, ${op.pairing}` : '') : null, op.diagnosis ? el('p', { class: `diagnosis ${tone(op.verdict)}` }, op.diagnosis) : null,
      sources(op), rerunPart(op), castDiagram(op), limitsTable(op), histogramPart(op), worstTable(op), explanationsTable(op), numbersTable(op)].filter(Boolean));
}
