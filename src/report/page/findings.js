// What is wrong, by cause; what the failing rows have in common; what to run next. And the program as a whole, when no
// op is wrong.
const OPEN_CAUSES = 8, NAMED_ROWS = 6;

const rowName = op => `${op.name}${REFERENCES.length > 1 ? ` in ${op.reference}` : ''}${DTYPES.length > 1 ? ` (${op.dtype})` : ''}`;
const rowLink = (op, select) => el('button', { type: 'button', class: 'link', onclick: () => select(op, true) }, breakable(rowName(op)));

function causePart(cause, select) {
  const ops = cause.rows.map(row => OPS[row]), first = ops[0], rest = ops.length - NAMED_ROWS;
  const named = ops.slice(0, NAMED_ROWS).flatMap((op, i) => [i ? ', ' : '', rowLink(op, select)]);
  return el('div', { class: `cause ${tone(cause.verdict)}` },
    el('h3', null, badge(cause.verdict), ' ', breakable(cause.title)),
    first.diagnosis && el('p', null, first.diagnosis),
    el('p', { class: 'rows' }, ops.length === 1 ? 'row: ' : 'rows: ', named, rest > 0 ? ` and ${rest.toLocaleString('en')} more` : ''),
    first.candidate && first.candidate !== first.path ? el('p', { class: 'sources' }, 'candidate ', code(first.candidate)) : null,
    sources(first),
    cause.broken.length ? el('ul', { class: 'broken' }, cause.broken.map(line => el('li', null, breakable(line)))) : null);
}

function nextPart() {
  return DATA.next.flatMap(step => [el('p', { class: 'why' }, `${step.why}:`), el('div', { class: 'command' }, el('code', null, step.command), copyButton(step.command))]);
}

function showFindings(select) {
  const { all, shown } = DATA.causes, rows = OPS.filter(op => op.finding).length;
  if (!shown.length && !DATA.next.length) return byId('findings').remove();
  const part = cause => causePart(cause, select), rest = shown.slice(OPEN_CAUSES);
  section('findings', shown.length ? 'Findings by cause' : 'What to run next',
    shown.length ? el('p', null, `${plural(rows, 'row is', 'rows are')} not green, by ${plural(all, 'cause')}.`) : null,
    DATA.discriminator && el('p', { class: 'common' }, el('strong', null, 'In common: '), DATA.discriminator.sentence),
    ...shown.slice(0, OPEN_CAUSES).map(part),
    rest.length ? folded(plural(rest.length, 'more cause'), () => rest.map(part)) : null,
    all > shown.length ? el('p', { class: 'soft' }, `${plural(all - shown.length, 'further cause')}: the table of ops has every row.`) : null,
    DATA.next.length && shown.length ? el('h3', null, 'What to run next') : null, ...nextPart());
}

function wholeSteps(steps, select) {
  const cell = step => { const op = OPS.find(o => o.path === step.path); return op ? rowLink(op, select) : code(step.path || '(the model’s result)'); };
  const rows = steps.map(s => [cell(s), s.kind, percent(s.share), digits(s.amplification), digits(s.predicted), digits(s.replayed), s.source && code(s.source)]);
  return table(['kept wide', 'kind', 'share of the squared error', 'amplification', 'error then, predicted', 'replayed', 'source'], rows, { numbers: [2, 3, 4, 5], class: 'steps-wide', label: 'What higher precision would bring' });
}

function showLogits() {
  if (!DATA.logits.length) return byId('logits').remove();
  section('logits', 'Logits', ...DATA.logits.map(line => el('p', null, breakable(`${line}.`))),
    el('p', { class: 'soft' }, 'Free-running, in nats. A tie: the reference’s first word leads its second by no more than 2 ULP and 2 rms errors of the token’s logits.'));
}

function showWhole(select) {
  const whole = DATA.whole;
  if (!whole) return byId('whole').remove();
  const error = [['candidate', whole.error], ['asked', whole.asked], ['the reference’s program in other valid arithmetics, the furthest', whole.valid_error], ['the recorded program against fp64', whole.precision]];
  section('whole', 'No op is wrong',
    el('p', null, 'Every op is right by itself, and the result lies further off than was asked.'),
    table(['', 'relative L2 of the result'], error.map(([what, x]) => [what, digits(x)]), { numbers: [1], class: 'whole', label: 'How far the result lies off' }),
    ...DATA.whole_lines.map(line => el('p', null, breakable(`${line}.`))),
    whole.steps.length ? el('p', null, 'What higher precision would bring, op by op, each besides those above it:') : null,
    whole.steps.length ? wholeSteps(whole.steps, select) : null,
    whole.steps.length ? el('p', { class: 'soft' }, 'Amplification: what the op’s own relative error becomes at the result. Replayed: the recorded program with exactly these results kept in fp64.') : null);
}
