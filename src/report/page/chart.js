// Error along the model: one point an op in execution order, each divided by its limit, on a log scale.
const TABS = [
  { id: 'local', title: 'Local (forced)', of: op => op.local, about: 'The op’s own error on the candidate’s inputs (teacher-forced), divided by its limit; the largest of its limits counts. Above 1 is outside.' },
  { id: 'inherited', title: 'Inherited', of: op => op.inherited, about: 'What came in with the inputs: free-running error without the op’s own, in units of the op’s own limit (relative L2; where it has none, one roundoff of its dtype).' },
  { id: 'free', title: 'Free-running', of: op => op.freely, about: 'All error there is when each side feeds itself, in units of the op’s own limit (relative L2; where it has none, one roundoff of its dtype).' },
];
const POINTS = [
  { tone: 'pass', label: 'pass', style: 'circle', radius: 3, has: op => op.verdict === 'pass' },
  { tone: 'note', label: 'undecided', style: 'rect', radius: 5, has: op => OPEN.includes(op.verdict) },
  { tone: 'fail', label: 'fail', style: 'triangle', radius: 6, has: op => op.red },
];
const HIGHEST = 1e6; // what has no size (NaN, a limit of zero) is drawn at the upper edge

class ErrorChart {
  constructor(select) {
    this.select = select;
    this.tab = TABS.find(t => OPS.some(op => t.of(op) > 0)) ?? TABS[0];
    this.dtype = '';
    this.selected = null;
    this.range = [-0.5, PLACES - 0.5];
    this.build();
    this.draw();
  }

  build() {
    const tab = t => el('button', { type: 'button', role: 'tab', id: `tab-${t.id}`, 'aria-controls': 'along-panel', onclick: () => { this.tab = t; this.draw(); } }, t.title);
    this.tabs = TABS.map(tab);
    this.tabs.forEach((button, i) => button.addEventListener('keydown', e => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (!step) return;
      const next = (i + step + TABS.length) % TABS.length;
      this.tabs[next].focus(); this.tabs[next].click(); e.preventDefault(); e.stopPropagation();
    }));
    this.dtypes = ['', ...DTYPES].map(d => el('button', { type: 'button', 'data-dtype': d, onclick: () => { this.dtype = d; this.draw(); } }, d || 'all dtypes'));
    this.canvas = el('canvas', { id: 'error-chart', tabindex: '0', role: 'img', 'aria-describedby': 'along-about' });
    const zoom = (text, label, act) => el('button', { type: 'button', class: 'small', 'aria-label': label, title: label, onclick: act }, text);
    this.about = el('p', { id: 'along-about', class: 'soft' });
    section('along', 'Error along the model',
      el('div', { class: 'controls' }, el('div', { role: 'tablist', 'aria-label': 'Which error', class: 'joined' }, this.tabs),
        DTYPES.length > 1 && el('div', { class: 'joined', role: 'group', 'aria-label': 'Dtype' }, this.dtypes),
        el('div', { class: 'joined', role: 'group', 'aria-label': 'Zoom' }, zoom('−', 'Wider', () => this.zoom(2)), zoom('+', 'Closer', () => this.zoom(.5)),
          zoom('◂', 'To the left', () => this.move(-.5)), zoom('▸', 'To the right', () => this.move(.5)), zoom('All', 'The whole model', () => this.zoomTo(-0.5, PLACES - 0.5)))),
      el('div', { id: 'along-panel', role: 'tabpanel', class: 'canvas' }, this.canvas), this.about);
    this.listen();
  }

  // Points at their places; exact ones (0) on the floor, what has no size at the ceiling.
  points() {
    const value = this.tab.of, shown = OPS.filter(op => (!this.dtype || op.dtype === this.dtype) && value(op) !== null);
    const positive = shown.map(value).filter(x => x > 0 && x < HIGHEST);
    const least = positive.reduce((a, b) => Math.min(a, b), 1), most = positive.reduce((a, b) => Math.max(a, b), 1);
    const floor = 10 ** Math.floor(Math.log10(Math.max(least, 1e-12)) - .5), top = 10 ** Math.ceil(Math.log10(most) + .3);
    this.shown = shown;
    this.scale = { floor, top };
    return shown.map(op => ({ x: op.place, y: Math.min(Math.max(value(op), floor), top), op }));
  }

  draw() {
    this.tabs.forEach((b, i) => { const on = TABS[i] === this.tab; b.setAttribute('aria-selected', on); b.tabIndex = on ? 0 : -1; });
    byId('along-panel').setAttribute('aria-labelledby', `tab-${this.tab.id}`);
    this.dtypes.forEach(b => b.setAttribute('aria-pressed', b.dataset.dtype === this.dtype));
    const points = this.points(), exact = this.shown.filter(op => this.tab.of(op) === 0).length, without = OPS.length - this.shown.length;
    this.canvas.setAttribute('aria-label', `${this.tab.title} error of ${this.shown.length} ops, log scale, limit at 1; ${this.shown.filter(op => this.tab.of(op) > 1).length} above it. Arrow keys walk through the ops, Enter opens one.`);
    this.about.textContent = [this.tab.about, exact ? `${plural(exact, 'op')} with no error at all on the floor.` : '',
      without && !this.dtype ? `${plural(without, 'op')} without this number not drawn.` : '', 'Drag across to zoom, click a point to open it.'].filter(Boolean).join(' ');
    this.chart?.destroy();
    this.chart = new Chart(this.canvas, this.configuration(points));
  }

  configuration(points) {
    const ink = colour('soft'), line = colour('line'), grow = points.length < 200 ? 2 : 0;
    return {
      type: 'scatter',
      data: { datasets: POINTS.map(p => ({
        label: p.label, clip: { left: 0, right: 0, top: false, bottom: false }, data: points.filter(point => p.has(point.op)), pointStyle: p.style, radius: p.radius + grow, hoverRadius: p.radius + 4, backgroundColor: colour(p.tone), borderColor: colour('ground'), borderWidth: points.length > 400 ? 0 : 1,
      })).filter(d => d.data.length).reverse() },
      options: {
        animation: false, maintainAspectRatio: false, responsive: true, normalized: true, events: ['mousemove', 'mouseout', 'touchstart', 'touchmove'],
        interaction: { mode: 'nearest', intersect: false, axis: 'xy' },
        scales: {
          x: { type: 'linear', min: this.range[0], max: this.range[1], grid: { display: false }, ticks: { color: ink, maxRotation: 0, autoSkipPadding: 24, precision: 0, callback: x => (Number.isInteger(x) ? x : '') }, title: { display: true, text: 'ops in execution order', color: ink }, border: { color: line } },
          y: { type: 'logarithmic', min: this.scale.floor, max: this.scale.top, grid: { color: line }, afterBuildTicks: axis => { axis.ticks = decades(axis.min, axis.max); }, ticks: { color: ink, autoSkip: false, callback: powerOfTen }, title: { display: true, text: 'error / limit', color: ink } },
        },
        plugins: {
          legend: { position: 'top', align: 'end', labels: { color: colour('ink'), usePointStyle: true, boxWidth: 8, boxHeight: 8 } },
          tooltip: { displayColors: false, callbacks: { title: items => items[0]?.raw.op.name, label: item => tooltipLines(item.raw.op, this.tab) } },
        },
      },
      plugins: [limitLine, { id: 'selected', afterDatasetsDraw: chart => this.ring(chart) }],
    };
  }

  ring(chart) {
    if (this.selected && this.shown.includes(this.selected)) {
      const y = Math.min(Math.max(this.tab.of(this.selected), this.scale.floor), this.scale.top), c = chart.ctx;
      c.save(); c.strokeStyle = colour('ink'); c.lineWidth = 2; c.beginPath();
      c.arc(chart.scales.x.getPixelForValue(this.selected.place), chart.scales.y.getPixelForValue(y), 10, 0, 2 * Math.PI); c.stroke(); c.restore();
    }
    if (this.drag) {
      const { top, bottom } = chart.chartArea;
      chart.ctx.save(); chart.ctx.fillStyle = colour('veil');
      chart.ctx.fillRect(Math.min(this.drag.from, this.drag.to), top, Math.abs(this.drag.to - this.drag.from), bottom - top); chart.ctx.restore();
    }
  }

  // A row was chosen somewhere: its point is ringed, and in view.
  show(op) {
    this.selected = op;
    if (op && (op.place < this.range[0] || op.place > this.range[1])) {
      const half = (this.range[1] - this.range[0]) / 2;
      return this.zoomTo(op.place - half, op.place + half);
    }
    this.chart.draw();
  }

  zoomTo(from, to) {
    const width = Math.min(Math.max(to - from, 4), PLACES), middle = (from + to) / 2;
    const low = Math.min(Math.max(middle - width / 2, -0.5), PLACES - 0.5 - width);
    this.range = [low, low + width];
    Object.assign(this.chart.options.scales.x, { min: this.range[0], max: this.range[1] });
    this.chart.update('none');
  }
  zoom(factor) {
    const middle = this.selected && this.selected.place >= this.range[0] && this.selected.place <= this.range[1] ? this.selected.place : (this.range[0] + this.range[1]) / 2;
    const half = (this.range[1] - this.range[0]) / 2 * factor;
    this.zoomTo(middle - half, middle + half);
  }
  move(share) { const by = share * (this.range[1] - this.range[0]); this.zoomTo(this.range[0] + by, this.range[1] + by); }

  step(direction) {
    const list = [...this.shown].sort((a, b) => a.place - b.place || a.row - b.row);
    if (!list.length) return;
    const now = list.indexOf(this.selected);
    const next = list[now < 0 ? (direction > 0 ? 0 : list.length - 1) : Math.min(Math.max(now + direction, 0), list.length - 1)];
    this.select(next, false);
    say(`${next.name}, ${next.verdict}, ${digits(this.tab.of(next))} of its limit`);
  }

  listen() {
    const keys = { ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), '+': () => this.zoom(.5), '=': () => this.zoom(.5), '-': () => this.zoom(2), 0: () => this.zoomTo(-0.5, PLACES - 0.5), Enter: () => this.selected && this.select(this.selected, true) };
    this.canvas.addEventListener('keydown', e => { if (keys[e.key] && !e.ctrlKey && !e.metaKey) { keys[e.key](); e.preventDefault(); e.stopPropagation(); } });
    const x = e => e.clientX - this.canvas.getBoundingClientRect().left;
    this.canvas.addEventListener('pointerdown', e => { if (e.pointerType === 'mouse' && e.button === 0) { this.drag = { from: x(e), to: x(e) }; this.canvas.setPointerCapture(e.pointerId); } });
    this.canvas.addEventListener('pointermove', e => { if (this.drag) { this.drag.to = x(e); this.chart.draw(); } });
    this.canvas.addEventListener('pointercancel', () => { this.drag = null; });
    this.canvas.addEventListener('pointerup', e => {
      const drag = this.drag; this.drag = null;
      if (drag && Math.abs(drag.to - drag.from) > 8) {
        const scale = this.chart.scales.x, [a, b] = [drag.from, drag.to].map(p => scale.getValueForPixel(p)).sort((p, q) => p - q);
        return this.zoomTo(a, b);
      }
      const near = this.chart.getElementsAtEventForMode(e, 'nearest', { intersect: false, axis: 'xy' }, true)[0];
      if (near) this.select(this.chart.data.datasets[near.datasetIndex].data[near.index].op, true);
    });
  }
}

// Every power of ten, or every second, third … where there are many.
function decades(min, max) {
  const first = Math.ceil(Math.log10(min) - 1e-9), last = Math.floor(Math.log10(max) + 1e-9), step = Math.ceil((last - first + 1) / 8);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i).filter(e => e % step === 0).map(e => ({ value: 10 ** e }));
}
const powerOfTen = x => { const e = Math.round(Math.log10(x)); return Math.abs(Math.log10(x) - e) < 1e-9 ? (Math.abs(e) < 4 ? String(Number((10 ** e).toPrecision(1))) : `1e${e}`) : ''; };
const tooltipLines = (op, tab) => [`${op.verdict}${op.gate ? `, gate ${op.gate}` : ''} · ${op.kind} · ${op.dtype}`, `${tab.title}: ${digits(tab.of(op))} of its limit`, `relative L2 ${digits(op.forced.rel_l2)} forced, ${digits(op.free.rel_l2)} free`];

const limitLine = {
  id: 'limit',
  beforeDatasetsDraw(chart) {
    const y = chart.scales.y.getPixelForValue(1), { left, right } = chart.chartArea, c = chart.ctx;
    c.save(); c.strokeStyle = c.fillStyle = colour('fail'); c.setLineDash([6, 4]); c.lineWidth = 1.5;
    c.beginPath(); c.moveTo(left, y); c.lineTo(right, y); c.stroke();
    c.font = '12px system-ui, sans-serif'; c.textAlign = 'right'; c.fillText('limit', right - 4, y - 5); c.restore();
  },
};
