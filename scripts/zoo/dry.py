"""What a run without parity-check made: how many cases each unit has, and why others were refused. It says nothing of verdicts: nobody was asked for one."""
import statistics
from collections import Counter


def _refusals(rows):
    """The reasons in a few words, the most frequent one first."""
    reasons = Counter(r["refused"].partition(":")[0].partition(" at ")[0] for r in rows if "refused" in r)
    return ", ".join(f"{n} x {reason}" for reason, n in reasons.most_common()) or "none"


def text(rows):
    units = {}
    for row in rows:
        units.setdefault((row["family"], row["dtype"]), []).append(row)
    lines = []
    for (family, dtype), part in units.items():
        made = {kind: [r for r in part if r["kind"] == kind and "refused" not in r] for kind in ("fault", "benign")}
        lines.append(f"{family + '.' + dtype:24s} {part[0]['level']:6s} {len(made['fault']):3d} faults, {len(made['benign']):2d} benign changes, "
                     f"{part[0]['unit_seconds']:5.1f} s to make; refused: {_refusals(part)}")
    made = [r for r in rows if "refused" not in r]
    seconds = [part[0]["unit_seconds"] for part in units.values()]
    return "\n".join([*lines, "", f"{len(units)} units, {sum(r['kind'] == 'fault' for r in made)} faults, {sum(r['kind'] == 'benign' for r in made)} benign changes, "
                      f"{sum(r['kind'] == 'self' for r in made)} comparisons with itself; {sum(seconds):.0f} s, {statistics.median(seconds):.1f} s a unit"])
