// Which casts each side took, as a diagram: what is computed in which dtype, step by step, one lane a side.

// "path: reference: LayerNorm in fp32, cast to bf16; port: as recorded (87.5 % bitwise equal)"
function lanesOf(casts) {
  const found = /: reference: (.*); (?:port|reference|candidate): (.*)$/s.exec(casts.sentence);
  return found ? { reference: found[1].split(', '), other: found[2] } : null;
}

const box = (text, look) => el('span', { class: `step ${look ?? ''}` }, breakable(text));
const lane = (name, steps, op) => el('li', null, el('strong', null, name),
  el('span', { class: 'steps' }, [...steps, box(op.tensor || op.dtype, 'end')].flatMap((s, i) => (i ? [el('span', { class: 'arrow', 'aria-label': 'then' }, '→'), s] : [s]))));

// The port's casts in two or three words, for the block diagram; "" when they are the reference's.
function castChange(op) {
  const casts = CASTS.get(op.path), best = casts?.tried[0]?.[0];
  if (best) return best === 'as recorded' ? '' : best.split(':')[0];
  const found = op.gate === 'dtype_path' && op.explanations.find(e => e.gate === 'dtype_path');
  return found ? found.fault : '';
}

function castDiagram(op) {
  const casts = CASTS.get(op.path), lanes = casts && lanesOf(casts);
  const found = op.explanations.find(e => e.gate === 'dtype_path');
  if (!lanes && !(op.gate === 'dtype_path' && found)) return null;
  const steps = lanes ? lanes.reference : [`${op.kind} as recorded`];
  const other = lanes ? lanes.other : `${found.fault}: ${found.detail}`;
  const same = other.startsWith('as recorded');
  return el('div', null, el('h4', null, 'Cast placement'),
    el('ul', { class: 'lanes' }, lane('reference', steps.map(s => box(s, s.startsWith('cast') ? 'cast' : '')), op),
      lane('candidate', [...steps.map(s => box(s, s.startsWith('cast') ? 'cast' : '')), box(other, same ? 'same' : 'other')], op)),
    casts && casts.tried.length > 1 ? el('details', null, el('summary', null, `${plural(casts.tried.length, 'placement')} tried, the best first`),
      table(['placement', 'bitwise equal', 'rel. L2'], casts.tried.map(([name, share, error]) => [name, el('span', null, bar(share), percent(share)), digits(error)]), { numbers: [1, 2], label: 'Cast placements tried' })) : null);
}

// A bar of a share; the number stands beside it.
const bar = share => el('span', { class: 'meter', 'aria-hidden': 'true' }, el('span', { style: { width: `${Math.max(0, Math.min(1, share ?? 0)) * 100}%` } }));
