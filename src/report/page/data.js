// The report's data: columns become rows, and each row learns how far it is from its limits.
const DATA = JSON.parse(document.getElementById('data').textContent);
const STRINGS = DATA.strings;
const OPEN = ['missing', 'inconclusive', 'untrusted'];           // neither green nor red
const ORDER = ['shape', 'fail', 'missing', 'inconclusive', 'untrusted', 'pass']; // worst first
const UNIT = { bf16: 2 ** -8, fp16: 2 ** -11, fp32: 2 ** -24, fp64: 2 ** -53, c64: 2 ** -24, c128: 2 ** -53 };
const PROPAGATION = 'own_inputs_rel_l2'; // the one limit that is not about an op's own error

// Numbers come as numbers; "nan", "inf" and "-inf" as texts, null where there is none.
const isNumber = x => typeof x === 'number';

const at = (columns, row) => Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]]));

function limitsOf(flat) {
  const out = [];
  for (let i = 0; i < flat.length; i += 5)
    out.push({ statistic: STRINGS[flat[i]], value: flat[i + 1], atLeast: flat[i + 2] === 1, measured: flat[i + 3], origin: STRINGS[flat[i + 4]] });
  return out;
}

function explanationsOf(flat) {
  const out = [];
  for (let i = 0; i < flat.length; i += 9)
    out.push({
      fault: STRINGS[flat[i]], detail: STRINGS[flat[i + 1]], gate: STRINGS[flat[i + 2]], amplitude: flat[i + 3], z: flat[i + 4],
      explained: flat[i + 5], rest: flat[i + 6], nullAmplitude: flat[i + 7], detectable: flat[i + 8],
    });
  return out;
}

// What was measured, in units of what is allowed: above 1 is outside. null: not to be said.
function used(limit) {
  const { measured, value, atLeast } = limit;
  if (measured === null || measured === undefined || value === null) return null;
  if (!isNumber(measured)) return Infinity;
  const [part, whole] = atLeast ? [1 - measured, 1 - value] : [measured, value];
  return whole > 0 ? Math.max(0, part / whole) : part > 0 ? Infinity : 0;
}

// Limits are named "rel_l2", or with what they hold: "free.rel_l2", "logic.rel_l2".
function measuredFor(op, name) {
  if (name === PROPAGATION) return op.free.candidate_error ?? null;
  if (name.startsWith('free.')) return op.free[name.slice(5)] ?? null;
  return op.forced[name.replace(/^forced\./, '')] ?? null;
}
const isOwn = limit => limit.statistic !== PROPAGATION && !limit.statistic.startsWith('free.');

function addRatios(op) {
  for (const limit of op.limits) limit.measured ??= measuredFor(op, limit.statistic);
  const own = op.limits.filter(isOwn).map(used).filter(x => x !== null);
  if (op.logicLimit !== null) own.push(used({ measured: op.logic, value: op.logicLimit, atLeast: false }) ?? 0);
  op.local = own.length ? Math.max(...own) : null;
  const relative = op.limits.find(l => !l.atLeast && ['candidate_error', 'rel_l2', 'free.rel_l2'].includes(l.statistic) && l.value > 0);
  op.yardstick = relative ? relative.value : UNIT[op.tensor] ?? UNIT[op.dtype] ?? UNIT.fp32;
  const free = op.free.rel_l2, forced = op.forced.rel_l2;
  op.freely = isNumber(free) ? free / op.yardstick : typeof free === 'string' ? Infinity : null;
  op.inherited = isNumber(free) && isNumber(forced) ? Math.sqrt(Math.max(0, free * free - forced * forced)) / op.yardstick : null;
}

function readOps() {
  const c = DATA.ops, text = (name, row) => STRINGS[c[name][row]];
  const out = [];
  for (let row = 0; row < c.n; row++) {
    const op = {
      row, index: c.index[row], call: c.call[row], forced: at(c.forced, row), free: at(c.free, row), limits: limitsOf(c.limits[row]),
      logic: c.logic[row], logicLimit: c.logic_limit[row], amplification: c.amplification[row], predicted: c.predicted[row],
      blame: c.blame[row], explanations: explanationsOf(c.explanations[row]), worst: c.worst[row], histogram: c.histogram[row],
    };
    for (const name of ['reference', 'path', 'candidate', 'kind', 'dtype', 'tensor', 'shape', 'verdict', 'gate', 'diagnosis', 'source'])
      op[name] = text(name, row);
    op.candidateSource = text('candidate_source', row);
    op.pairing = text('pairing', row);
    op.rerun = text('rerun', row).replace('\x1f', () => `'${op.path}'`);
    op.name = (op.path || '(the model’s result)') + (op.call > 0 ? ` call ${op.call}` : '');
    op.red = op.verdict === 'fail' || op.verdict === 'shape';
    op.finding = op.verdict !== 'pass';
    addRatios(op);
    out.push(op);
  }
  return out;
}

const OPS = readOps();
const REFERENCES = [...new Set(OPS.map(op => op.reference))];
const DTYPES = [...new Set(OPS.map(op => op.dtype))].filter(Boolean);
const KINDS = [...new Set(OPS.map(op => op.kind))].filter(Boolean).sort();
const COUNTS = Object.fromEntries(ORDER.map(v => [v, 0]));
for (const op of OPS) COUNTS[op.verdict]++;
const CASTS = new Map(DATA.casts.map(c => [c.path, c]));

// Places along the model: recordings one after the other, the same op in two dtypes at one place.
function addPlaces() {
  const places = new Map();
  for (const op of [...OPS].sort((a, b) => REFERENCES.indexOf(a.reference) - REFERENCES.indexOf(b.reference) || a.index - b.index)) {
    const key = op.reference + '\x1f' + op.index;
    if (!places.has(key)) places.set(key, places.size);
    op.place = places.get(key);
  }
  return places.size;
}
const PLACES = addPlaces();

// Bits of a number, in the first of `dtypes` that holds it exactly.
const VIEW = new DataView(new ArrayBuffer(8));

function halfBits(x) { // null: fp16 cannot hold it
  if (Number.isNaN(x)) return 0x7e00;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0, size = Math.abs(x);
  if (size === Infinity) return sign | 0x7c00;
  if (size === 0) return sign;
  let e = Math.floor(Math.log2(size));
  if (2 ** e > size) e--;
  if (2 ** (e + 1) <= size) e++;
  const steps = size / 2 ** Math.max(e - 10, -24);
  if (e > 15 || steps !== Math.floor(steps)) return null;
  return sign | (e < -14 ? steps : (e + 15) << 10 | (steps - 1024));
}

const hex = (bits, digits) => '0x' + bits.toString(16).padStart(digits, '0');

function bitsIn(x, dtype) {
  if (dtype === 'fp16') { const bits = halfBits(x); return bits === null ? null : hex(bits, 4); }
  if (dtype === 'fp64') { VIEW.setFloat64(0, x); return hex(VIEW.getBigUint64(0), 16); }
  if (dtype !== 'fp32' && dtype !== 'bf16') return null;
  VIEW.setFloat32(0, x);
  if (!Object.is(VIEW.getFloat32(0), x)) return null;
  const bits = VIEW.getUint32(0);
  if (dtype === 'fp32') return hex(bits, 8);
  return (bits & 0xffff) === 0 ? hex(bits >>> 16, 4) : null;
}

function bitsText(value, dtype) {
  const component = { c64: 'fp32', c128: 'fp64' }[dtype] ?? dtype;
  if (!(component in UNIT)) return '';
  const x = { nan: NaN, inf: Infinity, '-inf': -Infinity }[value] ?? value;
  for (const tried of [component, 'fp32', 'fp64']) {
    const bits = bitsIn(x, tried);
    if (bits !== null) return tried === component ? bits : `${bits} (${tried})`;
  }
  return '';
}
