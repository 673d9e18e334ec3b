"""Prints what a run of the zoo gave: a line per family, totals with intervals, and everything that went wrong."""
import statistics

from .intervals import share

LEAST = {"recall": 0.99, "right module": 0.97, "green against itself": 1.0}             # what is asked of the judge, as shares
MOST = {"false alarms": 0.0, "benign inconclusive": 0.05, "errors": 0.0}

class Tally:
    """Counts over some rows."""

    def __init__(self, rows):
        self.faults = [r for r in rows if r["kind"] == "fault" and "refused" not in r]
        self.benign = [r for r in rows if r["kind"] == "benign" and "refused" not in r]
        self.itself = [r for r in rows if r["kind"] == "self"]
        self.refused = [r for r in rows if "refused" in r]
        self.named = [r for r in self.faults if r["named"] is not None]

    def numbers(self):
        """name -> (hits, trials)."""
        count = lambda rows, test: (sum(map(bool, map(test, rows))), len(rows))   # noqa: E731
        return {
            "recall": count(self.faults, lambda r: r["found"]),
            "right module": count(self.faults, lambda r: r["placed"]),
            "right name": count(self.named, lambda r: r["named"]),
            "false alarms": count(self.benign, lambda r: r["verdict"] == "fail"),
            "benign inconclusive": count(self.benign, lambda r: r["verdict"] == "inconclusive"),
            "errors": count([*self.faults, *self.benign, *self.itself], lambda r: r["verdict"] == "error"),
            "green against itself": count(self.itself, lambda r: r["verdict"] == "pass"),
        }

    def shortfalls(self):
        """What is asked and not reached, as lines; shares of nothing ask nothing."""
        found = {name: pair for name, pair in self.numbers().items() if pair[1]}
        return [*(f"{name}: {share(*found[name])}, asked: at least {least:.0%}" for name, least in LEAST.items()
                  if name in found and found[name][0] < least * found[name][1]),
                *(f"{name}: {share(*found[name])}, asked: at most {most:.0%}" for name, most in MOST.items()
                  if name in found and found[name][0] > most * found[name][1])]

    def seconds(self):
        times = [r["seconds"] for r in (*self.faults, *self.benign, *self.itself)]
        return (statistics.median(times), max(times)) if times else (0.0, 0.0)


def _line(name, tally):
    n = tally.numbers()
    pair = lambda key: f"{n[key][0]:3d}/{n[key][1]:<3d}"   # noqa: E731
    middle, most = tally.seconds()
    return (f"{name:28s} {pair('recall')} {pair('right module')} {pair('right name')} {pair('false alarms')} {pair('benign inconclusive')} "
            f"{pair('green against itself')} {n['errors'][0]:4d} {len(tally.refused):4d}  {middle:5.2f} {most:6.2f}")


_COLUMNS = ("recall", "module", "name", "alarms", "unsure", "itself")
HEAD = f"{'family':28s} " + " ".join(f"{c:>7s}" for c in _COLUMNS) + f" {'err':>4s} {'ref':>4s}  {'s med':>5s} {'s max':>6s}"


def wrong(row):
    """'missed', 'misplaced', 'false alarm', 'inconclusive', 'error', 'not green against itself', or None."""
    if "refused" in row or row["verdict"] is None:
        return None
    if row["verdict"] == "error":
        return "error"
    if row["kind"] == "fault":
        return "missed" if not row["found"] else "misplaced" if not row["placed"] else None
    if row["kind"] == "self":
        return None if row["verdict"] == "pass" else "not green against itself"
    return {"fail": "false alarm", "inconclusive": "inconclusive"}.get(row["verdict"])


def complaint(row):
    kind = wrong(row)
    if row["path"] is not None:
        place = f"{row['path'] or '(result)'} call {row['call']}: {row['diagnosis']}"
    else:
        place = "; ".join(row["doubts"][:2]) or row["diagnosis"]
    more = ""
    if row["kind"] == "fault":
        t = row["truth"]
        more = f" [{row['recorded']}{', with ' + row['with'] if row['with'] else ''}; first wrong: {t['path'] or '(result)'} call {t['call']}, " \
               f"{t['share']:.2%} of elements, rel L2 {t['relative']:.2g}]"
    elif row["kind"] == "benign":
        more = f" [{row['recorded']}]"
    return f"{kind:24s} {row['family']}.{row['dtype']} {row['name']}{more} -> {row['verdict']} {place}"


def _groups(rows, key):
    found = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def text(rows, details=True):
    """The whole report."""
    lines = [HEAD]
    for name, part in sorted(_groups(rows, lambda r: f"{r['family']}.{r['dtype']}").items()):
        lines.append(_line(name, Tally(part)))
    lines.append("")
    for title, key in (("by half", "half"), ("by dtype", "dtype"), ("by kind of model", "model_kind"), ("by level of the reference", "level"),
                       ("by how the port recorded", "recorded"), ("by kind of fault", "group"), ("by operator", "operator")):
        lines += [title] + [_line(f"  {name}", Tally(part)) for name, part in sorted(_groups([r for r in rows if key in r], lambda r: r[key]).items())] + [""]
    lines += ["by benign change"] + [_line(f"  {name}", Tally(part)) for name, part in
                                     sorted(_groups([r for r in rows if r["kind"] == "benign"], lambda r: r["name"]).items())] + [""]
    lines += totals(rows)
    bad = sorted((complaint(r) for r in rows if wrong(r))) if details else []
    return "\n".join([*lines, "", *bad])


def totals(rows):
    tally = Tally(rows)
    middle, most = tally.seconds()
    lines = [f"{name:22s} {share(*pair)}" for name, pair in tally.numbers().items()]
    return [*lines, f"{'refused':22s} {len(tally.refused)}", f"{'seconds a compare':22s} median {middle:.2f}, at most {most:.2f}",
            *(f"short of what is asked: {line}" for line in tally.shortfalls())]
