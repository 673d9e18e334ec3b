"""Makes the pairs: a reference per family and dtype, its candidates, and what the manifest says about each."""
import itertools
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import torch

from . import capture, kernels
from .family import DIAGNOSES, Fault, Patches

THREADS = 2


@dataclass(frozen=True)
class Pair:
    family: object
    dtype: str
    fault: Fault | None     # None: a benign change alone
    kernel: str | None      # the benign change

    @property
    def reference(self):
        return f"{self.family.name}.{self.dtype}"

    @property
    def name(self):
        what = self.fault.name if self.fault else re.sub(r"[^a-z0-9]+", "-", self.kernel.lower())
        return f"{self.reference}.{'fault' if self.fault else 'honest'}.{what}"


    @property
    def complete(self):
        """All outputs are in the file. In float32, twice the size, only where nothing else says what a correct port looks like."""
        return not self.fault or self.fault.program or (self.fault.complete and self.dtype == "bf16")


def pairs_of(family):
    found = []
    for dtype in ("fp32", "bf16"):
        company = itertools.cycle(family.company[dtype])
        for fault in family.faults:
            if fault.diagnosis not in DIAGNOSES:
                raise ValueError(f"{family.name}: {fault.name}: unknown diagnosis {fault.diagnosis!r}")
            if dtype in fault.dtypes:
                found.append(Pair(family, dtype, fault, next(company) if fault.kernel == "" else fault.kernel))
        found += [Pair(family, dtype, None, kernel) for kernel in family.honest[dtype]]
    return found


def run(family, dtype, fault, kernel, listen):
    """listen(model, run) with the fault in a fresh model and the benign change around it."""
    torch.set_num_threads(THREADS)
    model = family.build(dtype)
    with torch.no_grad(), Patches() as patch:
        if kernel in family.kernels:
            family.kernels[kernel](model, patch)
            kernel = None
        if fault:
            fault.put_in(model, patch)
        with kernels.active(kernel):
            return listen(model, lambda m: family.run(m, dtype))


def listen(family, dtype, fault=None, kernel=None):
    """All boundaries of one run; in another process where the benign change must be there before PyTorch loads."""
    if kernels.here(kernel):
        return run(family, dtype, fault, kernel, capture.boundaries)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "boundaries.pt")
        subprocess.run([sys.executable, "-m", "selftest_models", family.name, dtype, kernel, file], check=True,
                       env={**os.environ, **kernels.ENVIRONMENTS[kernel], "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
        return torch.load(file, weights_only=False)


def record(path, family, dtype, fault=None, kernel=None):
    """The complete program and all weights, as a reference or by a PyTorch port."""
    import parity_probe

    def recorded(model, forward):
        with parity_probe.record(model, str(path), level="module"):
            forward(model)
    run(family, dtype, fault, kernel, recorded)


def first_change(found, base):
    """First boundary whose bits differ from `base`'s of the same key, and the share of its elements; None where all are equal."""
    right = {b.key: b.value for b in base}
    for b in found:
        if b.key not in right:
            raise ValueError(f"boundary {b.key} has no counterpart")
        share = capture.changed(b.value, right[b.key])
        if share:
            return b.key, share, round(share * b.value.numel())
    return None


def slight(found, base, key):
    """Is the change below 1 % in relative L2? Then it takes many elements to be seen at all."""
    a, b = ({x.key: x.value.double() for x in side}[key] for side in (found, base))
    return not (a - b).norm() / b.norm() > 0.01 and bool(torch.isfinite(a).all())


class Refused(ValueError):
    """A pair that would show nothing, or something else than it says."""


def make(pair, path, plain):
    """Writes one candidate and returns its manifest entry. `plain`: the reference's own boundaries. Raises Refused."""
    family, dtype, fault, kernel = pair.family, pair.dtype, pair.fault, pair.kernel
    found = listen(family, dtype, fault, kernel)
    if fault:
        base = listen(family, dtype, None, kernel) if kernel else plain   # the same kernels without the fault: what differs is the fault
        first = first_change(found, base)
        if first is None:
            raise Refused(f"{pair.name}: changes nothing")
        key, share, count = first
        if key != (fault.module, fault.call):
            raise Refused(f"{pair.name}: first wrong at {key}, not at {(fault.module, fault.call)}")
        if count <= 20 and slight(found, base, key):
            raise Refused(f"{pair.name}: changes {count} elements only, and those slightly")
    else:
        changed = sum(capture.changed(b.value, r.value) * b.value.numel() for b, r in zip(found, plain))
        key, share = (None, None), changed / sum(b.value.numel() for b in found)
        if not share:
            raise Refused(f"{pair.name}: changes nothing")
        routes = [b.path for b, r in zip(found, plain) if not b.value.is_floating_point() and capture.changed(b.value, r.value)]
        if routes:
            raise Refused(f"{pair.name}: rounding decides another way at {', '.join(routes)}")
    if fault and fault.program:
        record(path, family, dtype, fault, kernel)
    else:
        some = found if pair.complete else capture.chosen(found, key, family.blocks)
        capture.write(path, some, key, model=family.name, producer="selftest port")
    return {
        "file": path.name, "reference": f"{pair.reference}.h5", "family": family.name, "dtype": dtype,
        "kind": "fault" if fault else "honest", "name": fault.name if fault else kernel, "diagnosis": fault.diagnosis if fault else None,
        "module": key[0], "call": key[1], "with": kernel if fault else None,
        "recorded": "program" if fault and fault.program else "writer",
        "complete": pair.complete, "changed_share": float(f"{share:.6g}"),
        "note": fault.note if fault else f"{kernel}: the same arithmetic in another order",
    }
