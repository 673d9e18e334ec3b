"""All cases of one entry in one dtype: makes the files, asks parity-check, says what came out."""
import dataclasses
import tempfile
import time
from pathlib import Path

from selftest_models import capture

from . import check, produce, roundings
from .benign import CHANGES, counterparts
from .cases import benign_of, faults_of, number
from .operators.operator import sites
from .produce import Refused
from .truth import names_it, relative, slight, truth_of

CLOSE = 1e-3   # a benign change moves no boundary of the float32 model by more (relative L2), or it is none for this model
COARSE = {"fp32": 1e-4, "bf16": 0.02}   # a block's output must differ by this much for a port with block outputs alone to be asked


def level_of(entry, dtype):
    """How its reference is recorded: every fourth at level module."""
    return "module" if number(entry.name, dtype, "level") % 4 == 0 else "op"


class Unit:
    """The reference of an entry in a dtype, and its cases."""

    def __init__(self, entry, dtype, folder, binary, limit=check.TIME_LIMIT):
        self.entry, self.dtype, self.folder, self.binary, self.limit = entry, dtype, Path(folder), binary, limit
        self.plain = produce.boundaries(entry, dtype)
        self.wide = self.plain if dtype == "fp32" else None
        self._bases, self._strays, self._before_bias = {None: self.plain}, {}, None
        self.reference = self.folder / f"{entry.name}.{dtype}.h5"
        self.model = entry.build(dtype)
        produce.record(self.reference, entry, dtype, level_of(entry, dtype))

    def base(self, company):
        """The plain model's boundaries with the company's kernels."""
        if company not in self._bases:
            self._bases[company] = produce.boundaries(self.entry, self.dtype, None, CHANGES[company], self.plain)
        return self._bases[company]

    def row(self, kind, name, **more):
        return {"family": self.entry.name, "half": self.entry.half, "model_kind": self.entry.kind, "dtype": self.dtype,
                "level": level_of(self.entry, self.dtype), "kind": kind, "name": name, **more}

    def judged(self, candidate, row, reference=None):
        """The row with what parity-check says; without a program, with nothing (a dry run)."""
        if self.binary is None:
            return {**row, **check.UNASKED}
        return {**row, **check.compare(self.binary, reference or self.reference, candidate, self.folder, self.limit)}

    def company_of(self, fault):
        """The benign change that goes with the fault, where it applies to this model and is benign there."""
        if not fault.company or not CHANGES[fault.company].applies(self.entry, self.model):
            return None
        return None if self.strays(CHANGES[fault.company]) or produce.decides_otherwise(self.base(fault.company), self.plain) else fault.company

    def strays(self, change):
        """Paths where the change moves the float32 model further than rounding can (NaN included): rows that see no key, for one."""
        if change not in self._strays:
            if self.wide is None:
                self.wide = produce.boundaries(self.entry, "fp32")
            pairs = counterparts(produce.boundaries(self.entry, "fp32", None, change, self.wide), self.wide)
            self._strays[change] = [b.path for b, p in pairs if b.value.is_floating_point() and not relative(b.value, p.value) <= CLOSE]
        return self._strays[change]

    def rounds_more(self, change):
        """Linear layers of a half-width model that round once more under the change: an extra rounding, which fails by contract."""
        if self.dtype == "fp32":
            return []
        if self._before_bias is None:
            self._before_bias = roundings.before_bias(self.entry, self.dtype)
        return sorted(roundings.before_bias(self.entry, self.dtype, change, self.plain) - self._before_bias)

    def make_fault(self, fault, path):
        """Writes the candidate; returns (truth, how it was recorded, company). Raises Refused."""
        company, put = self.company_of(fault), (fault.operator, fault.path)
        try:
            found = produce.boundaries(self.entry, self.dtype, put, CHANGES.get(company), self.plain)
        except Exception as e:
            raise Refused(f"does not run: {type(e).__name__}: {e}") from e
        where, base = sites(fault.path), self.base(company)
        try:
            truth = truth_of(found, base, where)
        except ValueError as e:
            raise Refused(str(e)) from e
        if truth is None:
            raise Refused("changes nothing")
        if slight(truth):
            raise Refused(f"changes {truth.count} elements, and those slightly")
        recorded = fault.recorded
        if recorded == "blocks":
            coarse = truth_of(produce.of_blocks(found), base, where)
            recorded, truth = ("blocks", coarse) if coarse and coarse.relative > COARSE[self.dtype] else ("modules", truth)
        if recorded == "program":
            produce.record(path, self.entry, self.dtype, "module", put, CHANGES.get(company))
        else:
            produce.write(path, self.entry, produce.of_blocks(found) if recorded == "blocks" else found, (truth.path, truth.call))
        return truth, recorded, company

    def fault(self, fault):
        path = self.folder / "candidate.h5"
        row = self.row("fault", fault.name, operator=fault.operator.name, group=fault.operator.group)
        try:
            truth, recorded, company = self.make_fault(fault, path)
        except Refused as e:
            return {**row, "refused": str(e)}
        row = self.judged(path, {**row, "truth": dataclasses.asdict(truth), "recorded": recorded, "with": company})
        path.unlink()
        row["found"] = row["verdict"] == "fail"
        row["placed"] = row["found"] and row["path"] is not None and names_it(row["path"], row["call"], truth)
        names = fault.operator.names
        row["named"] = (row["found"] and any(row["diagnosis"].startswith(n) for n in names)) if names else None
        return row

    def make_benign(self, change, path, program=False):
        """Writes the candidate; returns the share of elements that differ from the plain run. Raises Refused."""
        try:
            pairs = counterparts(produce.boundaries(self.entry, self.dtype, None, change, self.plain), self.plain)
            differing = sum(capture.changed(b.value, p.value) * b.value.numel() for b, p in pairs)
        except Exception as e:
            raise Refused(f"does not run: {type(e).__name__}: {e}") from e
        if not differing:
            raise Refused("changes nothing")
        found = [b for b, _p in pairs]
        otherwise = produce.decides_otherwise(found, self.plain)
        if otherwise:
            raise Refused(f"rounding decides another way at {', '.join(otherwise[:3])}")
        if self.rounds_more(change):
            raise Refused(f"rounds a product before its bias is added at {', '.join(self.rounds_more(change)[:3])}")
        if self.strays(change):
            raise Refused(f"is no rounding of the same arithmetic at {', '.join(self.strays(change)[:3])}")
        if program:
            produce.record(path, self.entry, self.dtype, "module", None, change)
        else:
            produce.write(path, self.entry, found)
        return differing / sum(b.value.numel() for b in found)

    def benign(self, change, index):
        path, program = self.folder / "candidate.h5", index % 4 == 1 and not change.listen and not change.environment
        row = self.row("benign", change.name)
        try:
            share = self.make_benign(change, path, program)
        except Refused as e:
            return {**row, "refused": str(e)}
        row = self.judged(path, {**row, "changed_share": share, "recorded": "program" if program else "modules"})
        path.unlink()
        return row

    def itself(self):
        """The recording against itself, and against the module outputs of the same run."""
        yield self.judged(self.reference, self.row("self", "the recording itself"))
        path = self.folder / "candidate.h5"
        produce.write(path, self.entry, self.plain)
        yield self.judged(path, self.row("self", "its module outputs"))
        path.unlink()


def run(entry, dtype, binary, faults, benign, limit=check.TIME_LIMIT, elsewhere=True):
    """Rows of all cases: `faults` and `benign` are how many of each (None: all). Refused ones do not count towards them."""
    with tempfile.TemporaryDirectory(prefix=f"zoo-{entry.name}-") as folder:
        start = time.monotonic()
        unit = Unit(entry, dtype, folder, binary, limit)
        rows = list(unit.itself())
        for make, cases, most in ((lambda f, _i: unit.fault(f), faults_of(entry, dtype, unit.model), faults),
                                  (unit.benign, benign_of(entry, dtype, unit.model, elsewhere), benign)):
            accepted = 0
            for case in cases:
                if most is not None and accepted >= most:
                    break
                rows.append(make(case, accepted))
                accepted += "refused" not in rows[-1]
        rows[0]["unit_seconds"] = round(time.monotonic() - start, 1)
        return rows
