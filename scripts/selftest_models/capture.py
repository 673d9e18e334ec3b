"""Runs a model and writes what a foreign port would: its module outputs, without program and weights."""
import re
from dataclasses import dataclass

import torch


@dataclass
class Boundary:
    path: str               # as FORMAT.md: further outputs are path[1], path[2], ...
    call: int
    value: torch.Tensor     # a copy, as it was when the module returned
    again: bool             # the same tensor was another module's output just before (a dropout in eval, a container's last child)

    @property
    def key(self):
        return self.path, self.call


@torch.no_grad()
def boundaries(model, run):
    """Every module output of `run(model)`, in the order in which modules return."""
    from parity_probe.boundaries import outputs

    found, calls, alive = [], {}, {}

    def hook(path):
        def returned(_module, _args, result):
            for i, (_name, t) in enumerate(outputs(result)):
                name = f"{path}[{i}]" if i else path
                call = calls[name] = calls.get(name, -1) + 1
                identity = (t.data_ptr(), t.dtype, tuple(t.shape), t.stride())
                version, _ = alive.get(identity, (None, None))
                found.append(Boundary(name, call, t.detach().clone(memory_format=torch.contiguous_format), version == t._version))
                alive[identity] = (t._version, t)   # kept: its memory must not be given to another one
        return returned
    handles = [module.register_forward_hook(hook(path)) for path, module in model.named_modules()]
    try:
        run(model)
    finally:
        for h in handles:
            h.remove()
    return found


def bits(t):
    """The tensor's bits as integers, so that NaN equals itself and -0 differs from 0."""
    kinds = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float64: torch.int64}
    return t.contiguous().view(kinds[t.dtype]) if t.dtype in kinds else t


def changed(a, b):
    """Share of elements whose bits differ; 1 where shape or dtype do."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return 1.0
    return (bits(a) != bits(b)).double().mean().item() if a.numel() else 0.0


def is_result(b):
    """Of the model itself."""
    return b.path == "" or b.path.startswith("[")


def chosen(found, first, blocks):
    """What a coarse port hands in: one output before the first wrong one, that one and three more, the end of its block, and the model's results."""
    at = next(i for i, b in enumerate(found) if b.key == first)
    match = re.match(blocks, found[at].path)
    end = next((i for i, b in enumerate(found) if match and i >= at and b.path == match.group(0) and b.call == first[1]), at)
    before = [i for i in range(at) if not found[i].again][-1:]
    after = [i for i in range(at + 1, len(found)) if not found[i].again][:3]
    keep = {*before, at, *after, end, *(i for i, b in enumerate(found) if is_result(b))}
    last = {found[i].path: found[i].call for i in sorted(keep)}
    return [b for b in found if b.call <= last.get(b.path, -1)]   # a path's calls count from 0, so earlier ones come along


def write(path, found, wanted=None, **about):
    """Writes each distinct tensor once, under the innermost module that returned it; the model's results and the boundary `wanted` in any case."""
    import parity_probe

    with parity_probe.Writer(str(path), **about) as w:
        for b in found:
            if not b.again or is_result(b) or b.key == wanted:
                call = w.write(b.path, b.value)
                assert call == b.call, (b.key, call)
