"""Names made meaningless (t0 … tN) and a gross fault in the middle of the model: is the first divergence still at its module?"""
import dataclasses
import tempfile

import parity_probe

from . import produce
from .cases import faults_of
from .intervals import share
from .produce import Refused
from .truth import names_it, slight, truth_of
from .operators.operator import sites
from .unit import Unit

GROSS = .1          # relative L2 at the first boundary that is wrong
MIDDLE = (.2, .8)   # where that boundary lies, as a share of the model's boundaries


def write(path, found):
    """Each distinct tensor once, under its number, in the order in which they were made."""
    with parity_probe.Writer(path, model="nameless port") as writer:
        for number, boundary in enumerate(b for b in found if not b.again and b.value.is_floating_point()):
            writer.write(f"t{number}", boundary.value)


def fault_in_the_middle(unit, fault, middle=MIDDLE):
    """(boundaries, truth). Raises Refused."""
    try:
        found = produce.boundaries(unit.entry, unit.dtype, (fault.operator, fault.path), None, unit.plain)
        truth = truth_of(found, unit.plain, sites(fault.path))
    except Exception as e:
        raise Refused(f"does not run: {type(e).__name__}: {e}") from e
    if truth is None or slight(truth) or not truth.relative >= GROSS:
        raise Refused("is not gross")
    place = next(i for i, b in enumerate(found) if (b.path, b.call) == (truth.path, truth.call)) / len(found)
    if not middle[0] <= place <= middle[1]:
        raise Refused("does not lie in the middle")
    return found, truth


def run(units, binary, faults, limit, each):
    """Rows of `faults` such faults a model."""
    rows = []
    for entry, dtype in units:
        with tempfile.TemporaryDirectory(prefix=f"zoo-{entry.name}-") as folder:
            unit = Unit(entry, dtype, folder, binary, limit)
            accepted = 0
            for fault in faults_of(entry, dtype, unit.model):
                if accepted >= faults:
                    break
                try:
                    found, truth = fault_in_the_middle(unit, fault)
                except Refused:
                    continue
                accepted += 1
                path = unit.folder / "nameless.h5"
                write(path, found)
                row = unit.judged(path, {**unit.row("nameless", fault.name), "truth": dataclasses.asdict(truth)})
                row["found"] = row["verdict"] == "fail"
                row["placed"] = row["found"] and row["path"] is not None and names_it(row["path"], row["call"], truth)
                rows.append(row)
                each(row)
    return rows


def text(rows):
    bad = [f"{r['family']}.{r['dtype']} {r['name']}: {r['verdict']} at {r['path']}, not {r['truth']['path']}" for r in rows if not r["placed"]]
    return "\n".join([*bad, f"found {share(sum(r['found'] for r in rows), len(rows))}, at its module {share(sum(r['placed'] for r in rows), len(rows))}"])
