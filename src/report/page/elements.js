// Making elements. Every text goes in as a text node: nothing that came out of a file is ever read as markup.
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
  return made;
}

const byId = id => document.getElementById(id);
const say = text => { byId('said').textContent = text; };

// A section's heading and content; the section vanishes when there is none.
function section(id, title, ...content) {
  const place = byId(id);
  place.replaceChildren(el('h2', { id: `${id}-title` }, title), ...content.filter(Boolean));
  return place;
}

const SIGN = { pass: '✓', fail: '✗', shape: '✗', missing: '○', inconclusive: '?', untrusted: '!' };
const tone = verdict => (verdict === 'pass' ? 'pass' : verdict === 'fail' || verdict === 'shape' ? 'fail' : 'note');
const badge = verdict => el('span', { class: `badge ${tone(verdict)}` }, `${SIGN[verdict] ?? ''} ${verdict}`);
const code = text => el('code', null, breakable(text));

// Long paths break after dots and slashes, not in the middle of a name.
function breakable(text) {
  const parts = String(text).split(/(?<=[./_])/);
  return parts.flatMap((part, i) => (i ? [el('wbr'), part] : [part]));
}

// Three digits; "–" for a number that does not exist.
function digits(x, count = 3) {
  if (x === null || x === undefined) return '–';
  if (!isNumber(x)) return String(x);
  if (x === Infinity) return '∞';
  if (x === 0 || Number.isInteger(x) && Math.abs(x) < 1e6) return String(x);
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e5) return String(Number(x.toPrecision(count)));
  return x.toExponential(count - 1).replace(/\.?0+e/, 'e').replace('e+', 'e');
}
// "100 %" only when all are equal.
function percent(x) {
  if (!isNumber(x)) return digits(x);
  if (x === 1 || x === 0) return `${100 * x} %`;
  const shown = (100 * x).toPrecision(3);
  return Number(shown) >= 100 ? `${(Math.floor(1e6 * x) / 1e4)} %` : `${Number(shown)} %`;
}
const plural = (n, one, many = one + 's') => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

// Head cells and rows of cells: texts or elements. `numbers`: the columns that are aligned right.
function table(columns, rows, options = {}) {
  const numeric = new Set(options.numbers ?? []);
  const cell = (tag, content, i) => el(tag, { class: numeric.has(i) ? 'number' : null, scope: tag === 'th' ? 'col' : null }, content);
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': options.label },
    el('table', { class: options.class },
      el('thead', null, el('tr', null, columns.map((c, i) => cell('th', c, i)))),
      el('tbody', null, rows.map(row => el('tr', { class: row.look }, row.map((c, i) => cell('td', c, i)))))));
}

function copyButton(text) {
  const button = el('button', { type: 'button', class: 'small' }, 'Copy');
  button.addEventListener('click', async () => {
    let copied = true;
    try { await navigator.clipboard.writeText(text); }
    catch { copied = copyBySelection(text); } // pages opened from a file may not have the clipboard
    button.textContent = copied ? 'Copied' : 'Press Ctrl+C';
    say(copied ? 'Copied' : 'Could not copy');
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}

function copyBySelection(text) {
  const area = el('textarea', { class: 'unseen', 'aria-hidden': 'true' }, text);
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  return copied;
}

// A closed list that is made when it is first opened, or printed.
function folded(title, make) {
  const made = el('details', { ontoggle: () => made.fill() }, el('summary', null, title));
  made.fill = () => { if (made.childElementCount === 1) made.append(...make()); };
  return made;
}

const option = (value, text) => el('option', { value }, text);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const quiet = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
const scrollTo = element => element.scrollIntoView({ block: 'start', behavior: quiet() ? 'auto' : 'smooth' });
