// The clips of the same run: numbers, curves, every frame, and the worst ones laid over each other.
const OPEN_FRAMES = 32; // longer tables are folded

// Reference on the left of a line, candidate or difference on its right; the line is moved by a range input.
class FrameSlider {
  constructor(clip) {
    this.clip = clip;
    this.shown = clip.pictures[0];
    this.right = 'candidate';
    const names = { candidate: 'candidate', difference: `difference ×${digits(clip.gain)}` };
    this.under = el('img', { alt: '', draggable: 'false' });
    this.over = el('img', { class: 'over', alt: '', draggable: 'false' });
    this.line = el('span', { class: 'divider', 'aria-hidden': 'true' });
    this.label = el('span', { class: 'side right' });
    this.stage = el('div', { class: 'stage' }, this.under, this.over, this.line, el('span', { class: 'side' }, 'reference'), this.label);
    this.range = el('input', { type: 'range', min: '0', max: '100', step: '1', value: '50', class: 'slide', 'aria-label': 'Where the reference ends', oninput: () => this.place() });
    const button = (pressed, text, act) => { const b = el('button', { type: 'button', class: 'small', onclick: () => { act(); this.draw(); } }, text); b.pressed = pressed; return b; };
    this.buttons = [
      clip.pictures.map(p => button(() => this.shown === p, `frame ${p.index}${isNumber(p.psnr) ? `, ${digits(p.psnr)} dB` : ''}`, () => { this.shown = p; })),
      Object.entries(names).map(([what, text]) => button(() => this.right === what, text, () => { this.right = what; })),
    ];
    this.names = names;
    this.listen();
    this.draw();
  }

  get element() {
    const [frames, sides] = this.buttons, group = (label, list) => el('div', { class: 'joined', role: 'group', 'aria-label': label }, list);
    return el('div', { class: 'slider' }, el('div', { class: 'controls' }, group('Which frame', frames), group('Right of the line', sides)), this.stage, this.range);
  }

  listen() {
    const move = e => {
      const box = this.stage.getBoundingClientRect();
      this.range.value = String(Math.round(100 * Math.min(1, Math.max(0, (e.clientX - box.left) / box.width))));
      this.place();
    };
    this.stage.addEventListener('pointerdown', e => { if (e.button === 0) { this.stage.setPointerCapture(e.pointerId); move(e); } });
    this.stage.addEventListener('pointermove', e => { if (this.stage.hasPointerCapture(e.pointerId)) move(e); });
  }

  draw() {
    for (const b of this.buttons.flat()) b.setAttribute('aria-pressed', b.pressed());
    this.under.src = this.shown.reference;
    this.over.src = this.shown[this.right];
    this.under.alt = `Frame ${this.shown.index}: reference`;
    this.over.alt = `Frame ${this.shown.index}: ${this.names[this.right]}`;
    this.label.textContent = this.names[this.right];
    this.place();
  }

  place() {
    const at = `${this.range.value}%`;
    this.over.style.clipPath = `inset(0 0 0 ${at})`;
    this.line.style.left = at;
    this.range.setAttribute('aria-valuetext', `${this.range.value} % reference, the rest ${this.names[this.right]}`);
  }
}

// On paper the three pictures stand side by side.
function printedFrames(clip) {
  const figure = (p, what, text) => el('figure', null, el('img', { src: p[what], alt: '' }), el('figcaption', null, text));
  return el('div', { class: 'on-paper' }, clip.pictures.map(p => el('div', { class: 'three' }, figure(p, 'reference', `frame ${p.index}: reference`),
    figure(p, 'candidate', `candidate${isNumber(p.psnr) ? `, ${digits(p.psnr)} dB` : ''}`), figure(p, 'difference', `difference ×${digits(clip.gain)}`))));
}

function curves(frames) {
  const axes = [['psnr', 'PSNR, dB', 'accent', 'left'], ['ssim', 'SSIM', 'pass', 'right']].filter(([name]) => frames[name].some(isNumber));
  const ink = colour('soft'), radius = frames.index.length > 120 ? 0 : 3;
  const scale = (text, position) => ({ position, grid: { color: colour('line'), drawOnChartArea: position === 'left' }, ticks: { color: ink }, title: { display: true, text, color: ink } });
  return {
    type: 'line',
    data: { labels: frames.index, datasets: axes.map(([name, label, tint, position]) => ({
      label, yAxisID: name, data: frames[name].map(x => (isNumber(x) ? x : null)), borderColor: colour(tint), backgroundColor: colour(tint), borderWidth: 2,
      borderDash: position === 'right' ? [6, 3] : [], pointStyle: position === 'right' ? 'rect' : 'circle', pointRadius: radius,
    })) },
    options: {
      animation: false, maintainAspectRatio: false, interaction: { mode: 'index', intersect: false },
      scales: { x: { grid: { display: false }, ticks: { color: ink, maxRotation: 0, autoSkipPadding: 24 }, title: { display: true, text: 'frame', color: ink } }, ...Object.fromEntries(axes.map(([name, text, , position]) => [name, scale(text, position)])) },
      plugins: { legend: { position: 'top', align: 'end', labels: { color: colour('ink'), usePointStyle: true } } },
    },
  };
}

const CURVES = []; // [canvas, frames], drawn again when the theme changes
function drawCurves() {
  for (const [canvas, frames] of CURVES) { Chart.getChart(canvas)?.destroy(); new Chart(canvas, curves(frames)); }
}

function curvesPart(clip) {
  const { frames } = clip;
  if (!['psnr', 'ssim'].some(name => frames[name].some(isNumber))) return null;
  const canvas = el('canvas', { role: 'img', 'aria-label': `PSNR and SSIM of ${plural(frames.index.length, 'frame')}; the table of all frames has the numbers` });
  CURVES.push([canvas, frames]);
  return el('div', { class: 'canvas curves' }, canvas);
}

function framesTable({ columns, rows }) {
  const made = () => [table(columns, rows, { numbers: columns.map((_, i) => i), class: 'every-frame', label: 'Every frame' })];
  if (!rows.length) return null;
  return rows.length <= OPEN_FRAMES ? el('div', null, el('h4', null, 'Every frame'), ...made()) : folded(`All ${rows.length.toLocaleString('en')} frames`, made);
}

function clipPart(clip) {
  return [clip.name && el('h3', null, breakable(clip.name)), el('p', { class: `diagnosis ${clip.tone}` }, el('strong', null, clip.sentence)),
    ...clip.said.map(text => el('p', { class: 'warning' }, breakable(text))),
    el('p', { class: 'soft' }, breakable(`Reference ${clip.sides[0]}`), el('br'), breakable(`Candidate ${clip.sides[1]}`)),
    ...(clip.pictures.length ? [el('h4', null, 'The worst frames'), new FrameSlider(clip).element, printedFrames(clip)] : []),
    curvesPart(clip), clip.summary.length ? table(['', 'mean', 'worst frame'], clip.summary, { numbers: [1, 2], class: 'clip', label: 'Numbers of the clips' }) : null,
    el('p', { class: 'soft' }, `${clip.definition}.`), framesTable(clip.frames)].filter(Boolean);
}

function showFrames() {
  if (!DATA.video) return byId('frames').remove();
  section('frames', 'Video', ...DATA.video.flatMap(clipPart));
}
