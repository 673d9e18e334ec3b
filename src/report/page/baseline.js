// What changed since the baseline that this report was held against.
const SINCE_ROWS = 40;

function sinceTable(rows) {
  const change = row => (row.was === row.now ? row.now : `${row.was ?? 'absent'} → ${row.now ?? 'absent'}`);
  const toned = { worse: 'fail', better: 'pass', same: 'pass' };
  return table(['change', 'op', 'kind', 'dtype', 'verdict', 'number and note'],
    rows.map(r => [el('span', { class: `badge ${toned[r.change] ?? 'note'}` }, r.change), code(r.path), r.kind, r.dtype, change(r), el('span', null, breakable([r.number, r.note].filter(Boolean).join('; ')))]),
    { class: 'since', label: 'Changes since the baseline' });
}

function showSince() {
  const since = DATA.since;
  if (!since) return byId('since').remove();
  const rest = since.rows.slice(SINCE_ROWS);
  section('since', 'Since the baseline',
    el('p', { class: `diagnosis ${tone(since.verdict)}` }, el('strong', null, since.headline)),
    el('ul', null, [`baseline: ${since.file}`, ...since.about, ...since.notes, since.totals].filter(Boolean).map(line => el('li', null, breakable(line)))),
    since.rows.length ? sinceTable(since.rows.slice(0, SINCE_ROWS)) : null,
    rest.length ? folded(plural(rest.length, 'more change'), () => [sinceTable(rest)]) : null);
}
