// Puts the page together: one op is chosen at a time, wherever it was clicked; keys, theme, print.
Chart.defaults.font.family = 'system-ui, -apple-system, "Segoe UI", sans-serif';
let opTable, errorChart;

function select(op, scroll) {
  if (!op) return;
  opTable.show(op);
  errorChart?.show(op);
  const finding = step => opTable.neighbour(step, o => o.finding);
  showOp(opTable.detail, op, { previous: finding(-1), next: finding(1) }, select);
  try { history.replaceState(null, '', `#op=${op.row}`); } catch { /* pages opened from some places may not */ }
  if (!scroll) return;
  const narrow = matchMedia('(max-width: 60rem)').matches;
  scrollTo(narrow ? opTable.detail : byId('ops'));
  opTable.detail.querySelector('h3').focus({ preventScroll: true });
  say(`${op.name}: ${op.verdict}`);
}

function toFinding(step) {
  const next = opTable.neighbour(step, op => op.finding);
  if (next) select(next, true);
  else say(step > 0 ? 'No further finding' : 'No earlier finding');
}

const KEYS = {
  n: () => toFinding(1), p: () => toFinding(-1), t: () => setTheme(theme() === 'dark' ? 'light' : 'dark'),
  j: () => select(opTable.neighbour(1, () => true), false), k: () => select(opTable.neighbour(-1, () => true), false),
  '/': () => { scrollTo(byId('ops')); opTable.path.focus({ preventScroll: true }); }, '?': () => toggleHelp(),
};

function listenToKeys() {
  document.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target.closest('input, select, textarea')) { if (e.key === 'Escape') e.target.blur(); return; }
    if (KEYS[e.key]) { KEYS[e.key](); e.preventDefault(); }
  });
}

function toggleHelp() {
  const help = byId('help');
  help.hidden = !help.hidden;
  byId('keys').setAttribute('aria-expanded', String(!help.hidden));
}

// The system's wish, until the switch says otherwise.
const theme = () => document.documentElement.dataset.theme;
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-label', name === 'dark' ? 'Switch to light' : 'Switch to dark');
  errorChart?.draw();
  drawCurves();
  if (opTable?.selected) select(opTable.selected, false);
}

function listenToTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let chosen = false;
  setTheme(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', () => { if (!chosen) setTheme(dark.matches ? 'dark' : 'light'); });
  byId('theme').addEventListener('click', () => { chosen = true; setTheme(theme() === 'dark' ? 'light' : 'dark'); });
}

// On paper: light, everything opened (of large models not every block), charts as wide as the page. Afterwards as it was.
const PAPER_WIDTH = 700, PAPER_BLOCKS = 500;
function openAll() {
  const opened = [], blocks = OPS.length <= PAPER_BLOCKS;
  for (let closed; (closed = [...document.querySelectorAll('details:not([open])')].filter(d => blocks || !d.closest('#model'))).length;) // what is made inside may be closed
    for (const element of closed) { element.fill?.(); element.open = true; opened.push(element); }
  return opened;
}

function listenToPrint() {
  let before = null;
  window.addEventListener('beforeprint', () => {
    before = { theme: theme(), opened: openAll() };
    opTable.print(true);
    setTheme('light');
    drawHistogram();
    for (const chart of Object.values(Chart.instances)) chart.resize(PAPER_WIDTH, 240);
  });
  window.addEventListener('afterprint', () => {
    for (const element of before?.opened ?? []) element.open = false;
    opTable.print(false);
    setTheme(before?.theme ?? theme());
  });
}

function showSections() {
  const shown = [...document.querySelectorAll('main > section')].filter(s => s.querySelector('h2'));
  byId('sections').replaceChildren(...shown.map(s => el('a', { href: `#${s.id}` }, s.querySelector('h2').textContent)));
}

function begin() {
  showHead(select);
  document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  showEnvironment();
  showFindings(select);
  showWhole(select);
  showLogits();
  showSince();
  opTable = new OpTable(select);
  if (OPS.some(op => TABS.some(t => t.of(op) !== null))) errorChart = new ErrorChart(select);
  else byId('along').remove();
  showModel(select);
  showBlame(select);
  showFrames();
  new Pairing();
  showCoverage();
  showSections();
  listenToTheme();
  listenToPrint();
  listenToKeys();
  byId('keys').addEventListener('click', toggleHelp);
  const linked = /^#op=(\d+)$/.exec(location.hash);
  if (linked && OPS[linked[1]]) select(OPS[linked[1]], true);
  else if (DATA.first !== null) select(OPS[DATA.first], false);
  document.documentElement.dataset.ready = 'yes';
}
begin();
