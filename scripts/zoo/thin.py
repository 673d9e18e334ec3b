"""A nameless port that recorded little, healthy and with a gross fault: how many of its tensors are paired with what they are?

Half of a model's modules write what they return, the same ones in every block, as t0 … tN; its result is always there. What of a tensor is right is told by the
values: a pair is right when the boundary that it names holds, in the reference's recording, what the module returns without the fault.
"""
import json
import random
import re
import tempfile

import h5py
import numpy
import parity_probe
import torch
from parity_probe.show import read_events
from selftest_models import capture

from . import produce
from .cases import faults_of
from .nameless import fault_in_the_middle
from .produce import Refused
from .unit import Unit

KEEP = .5           # share of the modules
PLACE = (.1, .8)    # where the fault's first boundary lies, as a share of the model's boundaries


def kept(found, seed, alike=True):
    """The boundaries that the port records: distinct tensors of real numbers, of all blocks `alike` or of each its own."""
    some = []
    for b in found:
        if not b.value.is_floating_point():
            continue
        chance = random.Random(seed + (re.sub(r"\d+", "#", b.path) if alike else f"{b.path} {b.call}")).random()
        again = any(k.value.shape == b.value.shape and torch.equal(k.value, b.value) for k in some)
        if not again if capture.is_result(b) else not b.again and chance < KEEP:
            some.append(b)
    return some


class Recorded:
    """What a recording at level op holds at its boundaries, by (path, call)."""

    def __init__(self, path):
        self._file, self._keys = h5py.File(path), {}
        calls, counts = {}, {}
        for event in read_events(self._file):
            if event["e"] == "call":
                calls[event["id"]] = event["path"], event["call"]
            elif event["e"] == "op" and event["in"] in calls:
                kind = event["op"].split("::")[1].split(".")[0]
                n = counts[event["in"], kind] = counts.get((event["in"], kind), -1) + 1
                self._add(f"{calls[event['in']][0]}/{kind}.{n}", calls[event["in"]][1], event["out"])
            elif event["e"] == "ret":
                self._add(*calls[event["id"]], event["outputs"])

    def _add(self, path, call, values):
        for i, value in enumerate(values or []):
            if value and "k" in value:
                self._keys[f"{path}[{i}]" if i else path, call] = value["k"]

    def holds(self, path, call, value):
        """Has the boundary these numbers, in whatever order of axes?"""
        if (path, call) not in self._keys:
            return False
        mine = torch.as_tensor(numpy.asarray(self._file["values"][self._keys[path, call]][()])).to(value.dtype).flatten()
        return mine.numel() == value.numel() and torch.equal(mine.sort().values, value.flatten().sort().values)


def ports(unit, faults):
    """(name, boundaries) of the healthy port and of those with the first `faults` gross faults."""
    yield "healthy", unit.plain
    for fault in faults_of(unit.entry, unit.dtype, unit.model):
        if faults <= 0:
            return
        try:
            found, _truth = fault_in_the_middle(unit, fault, PLACE)
        except Refused:
            continue
        faults -= 1
        yield fault.name, found


def pairs_of(report):
    return {op["candidate_path"]: op for op in json.loads(report.read_text())["ops"] if op["candidate_path"]}


def judged(unit, recorded, name, found, alike=True):
    port = unit.folder / "thin.h5"
    tensors = kept(found, f"{unit.entry.name}{name}", alike)
    with parity_probe.Writer(port, model="thin port") as writer:
        for n, b in enumerate(tensors):
            writer.write(f"t{n}", b.value)
    row = unit.judged(port, unit.row("thin", name, tensors=len(tensors), wrong=[], missed=[]))
    if row["verdict"] == "error":
        raise RuntimeError(f"{unit.entry.name}.{unit.dtype} {name}: {row['diagnosis'][:200]}")
    plain, pairs = {b.key: b.value for b in unit.plain}, pairs_of(unit.folder / "report.json")
    for n, b in enumerate(tensors):
        pair = pairs.get(f"t{n}")
        if pair is None:
            row["missed"].append(b.path)
        elif not recorded.holds(pair["path"], pair["call"], plain[b.key]):
            row["wrong"].append(f"{b.path} is {pair['path']} ({(pair['pairing'] or {}).get('witnesses')})")
    return row


def run(units, binary, faults, limit, each):
    """Rows of each model's healthy port and of `faults` faults."""
    rows = []
    for entry, dtype in units:
        with tempfile.TemporaryDirectory(prefix=f"zoo-{entry.name}-") as folder:
            unit = Unit(entry, dtype, folder, binary, limit)
            produce.record(unit.reference, entry, dtype, "op")
            recorded, known = Recorded(unit.reference), {b.key for b in unit.plain}
            for name, found in ports(unit, faults):
                rows.append(judged(unit, recorded, name, [b for b in found if b.key in known]))
                each(rows[-1])
    return rows


def text(rows):
    lines = [f"{r['family']}.{r['dtype']} {r['name']}: {len(r['missed'])} of {r['tensors']} not paired" + "".join(f"\n    {w}" for w in r["wrong"])
             for r in rows if r["wrong"] or r["missed"]]
    for kind, some in (("healthy", [r for r in rows if r["name"] == "healthy"]), ("with a fault", [r for r in rows if r["name"] != "healthy"])):
        tensors, wrong, missed = (sum(map(count, some)) for count in (lambda r: r["tensors"], lambda r: len(r["wrong"]), lambda r: len(r["missed"])))
        lines.append(f"{kind}: {len(some)} ports, {tensors} tensors, {tensors - wrong - missed} paired right, {wrong} wrong, {missed} not")
    return "\n".join(lines)
