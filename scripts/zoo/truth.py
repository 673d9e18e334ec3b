"""What is right about a mutated run, and whether parity-check said it.

The truth is measured: plain and mutated model run with the same kernels, and the first module boundary, in the order in which modules return, whose bits
differ is the place (pairs.first_change). The right module is named when first_divergence is

- that boundary (path without output index, and call), or another name of the same tensor (a container that returns its last child's result), or
- an op `module/op.n` of that boundary's module, of the module that carries the fault, or of a module on the way between the two in the module tree
  (attention computes in its own code between its projections: the fault is in `attn`, the first wrong boundary is `attn.out`);
- where the port recorded less, the first boundary it did record that differs, as above.
"""
import re
from dataclasses import dataclass

from selftest_models import capture


@dataclass(frozen=True)
class Truth:
    path: str
    call: int
    names: tuple      # every path that this tensor has, `path` among them
    sites: tuple      # modules that carry the fault
    share: float      # of elements that differ
    count: int
    relative: float   # relative L2 of the difference


def base(path):
    """Without the output index."""
    return re.sub(r"\[\d+\]$", "", path)


def relative(a, b):
    if a.shape != b.shape or not b.is_floating_point():
        return float("inf") if capture.changed(a, b) else 0.0
    a, b = a.double(), b.double()
    return ((a - b).norm() / b.norm().clamp_min(1e-300)).item()


def truth_of(found, plain, sites):
    """The Truth of boundaries `found` against those of the same run without the fault; None where all bits are equal."""
    right = {b.key: b.value for b in plain}
    for i, b in enumerate(found):
        if b.key not in right:
            raise ValueError(f"boundary {b.key} has no counterpart")
        share = capture.changed(b.value, right[b.key])
        if share:
            names = {base(b.path)}
            for other in found[i + 1:]:
                if not other.again or other.value.shape != b.value.shape or capture.changed(other.value, b.value):
                    break
                names.add(base(other.path))
            return Truth(b.path, b.call, tuple(sorted(names)), tuple(sites), share, round(share * b.value.numel()), relative(b.value, right[b.key]))
    return None


def slight(truth):
    """Too little to be seen by anybody: at most 20 elements, each slightly (as pairs.make refuses)."""
    return truth.count <= 20 and not truth.relative > 0.01


def ancestors(path):
    """The path itself, and what contains it, up to the model ("")."""
    parts = path.split(".") if path else []
    return [".".join(parts[:n]) for n in range(len(parts), -1, -1)]


def between(site, path):
    """The modules on the way from `site` to `path` in the module tree, both included."""
    up, down = ancestors(site), ancestors(path)
    meeting = next(a for a in up if a in down)
    return {*up[:up.index(meeting) + 1], *down[:down.index(meeting) + 1]}


def names_it(path, call, truth):
    """Does first_divergence (path, call) name the right module?"""
    module, slash, _op = path.rpartition("/")
    if not slash:
        return base(path) in truth.names and call == truth.call
    allowed = set(truth.names).union(*(between(site, base(truth.path)) for site in truth.sites))
    return module in allowed and call == truth.call
