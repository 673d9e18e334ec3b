// The table of ops: sorted, filtered, a page at a time (5,000 rows at once would take the browser a second).
const PAGE = 100, PRINTED = 1000;
const COLUMNS = [
  { id: 'index', title: '#', of: op => op.row, show: op => String(op.index), number: true, wide: true },
  { id: 'name', title: 'op', of: op => op.name, show: op => op.name },
  { id: 'kind', title: 'kind', of: op => op.kind, show: op => op.kind, wide: true },
  { id: 'dtype', title: 'dtype', of: op => op.dtype, show: op => op.dtype, wide: true },
  { id: 'verdict', title: 'verdict', of: op => -ORDER.indexOf(op.verdict), show: op => badge(op.verdict) },
  { id: 'local', title: 'local / limit', of: op => op.local, show: op => digits(op.local), number: true },
  { id: 'rel_l2', title: 'rel. L2', of: op => op.forced.rel_l2, show: op => digits(op.forced.rel_l2), number: true, wide: true },
  { id: 'equal', title: 'equal', of: op => op.forced.bitwise_equal_share, show: op => percent(op.forced.bitwise_equal_share), number: true, wide: true },
  { id: 'free', title: 'free rel. L2', of: op => op.free.rel_l2, show: op => digits(op.free.rel_l2), number: true, wide: true },
  { id: 'blame', title: 'blame', of: op => op.blame, show: op => (op.blame === null ? '–' : percent(op.blame)), number: true, wide: true },
].filter(c => (c.id !== 'dtype' || DTYPES.length > 1) && OPS.some(op => (c.of(op) ?? null) !== null));

// Numbers by size, texts with their numbers in order (block 2 before block 10); what has none comes last.
const COLLATOR = new Intl.Collator('en', { numeric: true });
function compareCells(a, b) {
  const size = x => (x === 'nan' || x === 'inf' ? Infinity : x === '-inf' ? -Infinity : x);
  return typeof a === 'string' && typeof b === 'string' && size(a) === a ? COLLATOR.compare(a, b) : size(a) - size(b) || 0;
}

// "attn" anywhere in the path; with * as a glob over the whole of it.
function pathFilter(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return () => true;
  const of = op => [op.name.toLowerCase(), op.candidate.toLowerCase()];
  if (!wanted.includes('*')) return op => of(op).some(path => path.includes(wanted));
  const pattern = new RegExp(`^${wanted.split('*').map(part => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
  return op => of(op).some(path => pattern.test(path));
}

class OpTable {
  constructor(select) {
    this.select = select;
    this.sort = { column: COLUMNS[0], down: false };
    this.verdicts = new Set();
    this.page = 0;
    this.perPage = PAGE;
    this.selected = null;
    this.build();
    this.refresh();
  }

  build() {
    const refresh = () => { this.page = 0; this.refresh(); };
    this.path = el('input', { type: 'search', id: 'filter-path', placeholder: 'path, or glob with *', 'aria-label': 'Filter by path', autocomplete: 'off', spellcheck: 'false', oninput: refresh });
    const choice = (id, label, all, values) => el('select', { id, 'aria-label': label, onchange: refresh }, option('', all), values.map(v => option(v, v)));
    this.kind = choice('filter-kind', 'Filter by kind', 'all kinds', KINDS);
    this.dtype = DTYPES.length > 1 ? choice('filter-dtype', 'Filter by dtype', 'all dtypes', DTYPES) : null;
    this.reference = REFERENCES.length > 1 ? choice('filter-reference', 'Filter by recording', 'all recordings', REFERENCES) : null;
    this.chips = ORDER.filter(v => COUNTS[v] > 0).map(v => el('button', { type: 'button', class: `chip ${tone(v)}`, 'data-verdict': v, 'aria-pressed': 'false', onclick: () => { this.toggle(v); refresh(); } }, `${SIGN[v]} ${v} ${COUNTS[v].toLocaleString('en')}`));
    this.heads = COLUMNS.map(c => el('th', { scope: 'col', 'data-title': c.title, class: [c.number && 'number', c.wide && 'wide'].filter(Boolean).join(' ') }, el('button', { type: 'button', 'data-column': c.id, onclick: () => this.sortBy(c) }, c.title)));
    this.body = el('tbody');
    this.count = el('p', { class: 'soft', role: 'status' });
    this.turn = [-1, 1].map(step => el('button', { type: 'button', class: 'small', onclick: () => { this.page += step; this.refresh(); } }, step < 0 ? '‹ before' : 'after ›'));
    this.detail = el('article', { id: 'op', 'aria-label': 'The op chosen' }, el('p', { class: 'soft' }, 'Choose an op in the table, the chart or the block diagram; n goes to the next finding.'));
    section('ops', 'Ops',
      el('div', { class: 'controls' }, el('div', { class: 'chips', role: 'group', 'aria-label': 'Filter by verdict' }, this.chips), this.path, this.kind, this.dtype, this.reference),
      el('div', { class: 'split' },
        el('div', { class: 'list' }, el('div', { class: 'scroll' }, el('table', { id: 'op-table' }, el('caption', { class: 'unseen' }, 'Ops in execution order; the head of a column sorts'), el('thead', null, el('tr', null, this.heads)), this.body)),
          el('div', { class: 'controls' }, this.turn[0], this.count, this.turn[1])),
        this.detail));
  }

  toggle(verdict) {
    this.verdicts.has(verdict) ? this.verdicts.delete(verdict) : this.verdicts.add(verdict);
    for (const chip of this.chips) chip.setAttribute('aria-pressed', this.verdicts.has(chip.dataset.verdict));
  }

  // First click: largest first for numbers and verdicts, a to z for texts.
  sortBy(column) {
    const largestFirst = column.number && column.id !== 'index' || column.id === 'verdict';
    this.sort = { column, down: this.sort.column === column ? !this.sort.down : largestFirst && column.id !== 'verdict' };
    this.page = 0;
    this.refresh();
  }

  filtered() {
    const path = pathFilter(this.path.value), { column, down } = this.sort;
    const chosen = (select, of) => !select?.value || of === select.value;
    const shown = OPS.filter(op => (!this.verdicts.size || this.verdicts.has(op.verdict)) && chosen(this.kind, op.kind) && chosen(this.dtype, op.dtype) && chosen(this.reference, op.reference) && path(op));
    const has = op => (column.of(op) ?? null) !== null, sign = down || column.id === 'verdict' && !down ? -1 : 1;
    const by = column.id === 'verdict' ? (down ? 1 : -1) : sign;
    return shown.sort((a, b) => (has(b) - has(a)) || (has(a) ? by * compareCells(column.of(a), column.of(b)) : 0) || a.row - b.row);
  }

  refresh() {
    this.rows = this.filtered();
    const pages = Math.max(1, Math.ceil(this.rows.length / this.perPage));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const from = this.page * this.perPage, visible = this.rows.slice(from, from + this.perPage);
    this.body.replaceChildren(...visible.map(op => this.rowOf(op)));
    if (!visible.length) this.body.replaceChildren(el('tr', null, el('td', { colspan: COLUMNS.length, class: 'soft' }, 'No op fits these filters.')));
    this.heads.forEach((head, i) => head.setAttribute('aria-sort', COLUMNS[i] !== this.sort.column ? 'none' : this.sort.down ? 'descending' : 'ascending'));
    const text = this.rows.length > this.perPage ? `${from + 1}–${from + visible.length} of ${plural(this.rows.length, 'op')}` : plural(this.rows.length, 'op');
    this.count.textContent = this.rows.length < OPS.length ? `${text} (of ${OPS.length.toLocaleString('en')})` : text;
    this.turn[0].hidden = this.turn[1].hidden = pages === 1;
    this.turn[0].disabled = this.page === 0;
    this.turn[1].disabled = this.page === pages - 1;
  }

  rowOf(op) {
    const cell = c => {
      const shown = c.show(op), look = [c.number && 'number', c.wide && 'wide'].filter(Boolean).join(' ');
      if (c.id !== 'name') return el('td', { class: look || null }, shown);
      return el('td', { class: 'name' }, el('button', { type: 'button', class: 'link', onclick: () => this.select(op, true) }, breakable(shown)), castChange(op) ? el('span', { class: 'tag' }, castChange(op)) : null,
        el('span', { class: 'narrow soft' }, [op.kind, op.dtype].filter(Boolean).join(' · ')));
    };
    return el('tr', { 'data-row': op.row, class: `${tone(op.verdict)}${op === this.selected ? ' chosen' : ''}`, 'aria-current': op === this.selected ? 'true' : null, onclick: e => { if (!e.target.closest('button')) this.select(op, true); } }, COLUMNS.map(cell));
  }

  // More rows on paper, where no button turns the page.
  print(on) {
    this.perPage = on ? PRINTED : PAGE;
    this.page = 0;
    this.refresh();
  }

  // Marks the row of `op`, turning to its page when the filters let it through.
  show(op) {
    this.selected = op;
    const place = this.rows.indexOf(op);
    if (place >= 0 && Math.floor(place / this.perPage) !== this.page) { this.page = Math.floor(place / this.perPage); return this.refresh(); }
    for (const row of this.body.children) {
      const chosen = Number(row.dataset.row) === op.row;
      row.classList.toggle('chosen', chosen);
      chosen ? row.setAttribute('aria-current', 'true') : row.removeAttribute('aria-current');
    }
  }

  // The next row, or finding, in the table's order from the one chosen; null at the end.
  neighbour(step, wanted) {
    const list = this.rows.filter(op => wanted(op) || op === this.selected), now = list.indexOf(this.selected);
    if (now < 0) return list[step > 0 ? 0 : list.length - 1] ?? null;
    return list[now + step] ?? null;
  }
}
