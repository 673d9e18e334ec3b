"""What is left out, done twice, or taken from the wrong moment."""
import torch
from torch.nn import functional as F

from selftest_models import changes as c

from ..places import callers, is_linear, stacks, writes
from ..within import UNCHANGED, within
from .operator import Operator, at

_SUMS = (torch.Tensor.add, torch.Tensor.add_, torch.add)


def _no_residual(which):
    """In the module's own code, the `which`-th sum with one of its inputs (or with an earlier such sum) is left out."""
    def change(m, patch):
        known, seen = [], [0]

        def begin(args, kwargs):
            known[:] = [t for t in (*args, *kwargs.values()) if torch.is_tensor(t)]
            seen[0] = 0

        def handler(func, args, kwargs):
            if func not in _SUMS or len(args) < 2 or not all(torch.is_tensor(t) and t.is_floating_point() and t.dim() > 1 for t in args[:2]):
                return UNCHANGED
            a, b = args[:2]
            mine = [any(t is k for k in known) for t in (a, b)]
            if a.shape != b.shape or not any(mine):
                return UNCHANGED
            seen[0] += 1
            result = (b if mine[0] and not mine[1] else a).clone() if seen[0] == which else func(*args, **kwargs)
            known.append(result)
            return result
        within(m, patch, handler, on_call=begin)
    return at(change)


def _blocks(model):
    return [p for p, m in callers(model) if p and writes(m, r"\+|add")]


def _stale(model, path, patch):
    first, second = path.split("|")
    c.stale(model.get_submodule(second), model.get_submodule(first), patch)


def _neighbouring_parts(model):
    """A linear layer or norm and the same one of the next block: same shape of results."""
    found = []
    for path, blocks in stacks(model):
        for i in range(len(blocks) - 1):
            later = dict(blocks[i + 1].named_modules())
            found += [f"{path}.{i}.{n}|{path}.{i + 1}.{n}" for n, m in blocks[i].named_modules()
                      if n in later and (is_linear(m) or "Norm" in type(m).__name__) and not list(m.children()) and list(m.parameters())]
    return found


def _last_call(m, patch):
    """From the second call on, the first call's result as far as it reaches (a scratch buffer that was not written)."""
    first = []

    def old(y):
        first.append(y)
        fits = first[0].dim() == y.dim() and first[0].dim() > 2 and first[0].shape[1] >= y.shape[1]
        return first[0][:, :y.shape[1]].clone() if fits and len(first) > 1 else y
    c.after(m, patch, old)


def _linears(model):
    return [p for p, m in model.named_modules() if is_linear(m)]


def _bilinear(m, patch):
    def handler(func, args, kwargs):
        if func is F.interpolate and kwargs.get("mode", "nearest") == "nearest" and args[0].dim() == 4:
            return F.interpolate(args[0], **{**kwargs, "mode": "bilinear"})
        return UNCHANGED
    within(m, patch, handler)


def _upsamplers(model):
    return [p for p, m in model.named_modules() if "psampl" in type(m).__name__]


def _row_later(m, patch):
    """The result one token (or row) late: an off-by-one in a buffer."""
    c.after(m, patch, lambda y: y.roll(1, 1) if y.dim() > 2 else y)


OPERATORS = [
    Operator("residual_missing", "structure", _blocks, _no_residual(1), ("residual missing",)),
    Operator("second_residual_missing", "structure", _blocks, _no_residual(2), ("residual missing",)),
    Operator("stale_layer", "structure", _neighbouring_parts, _stale, ("stale value",)),
    Operator("stale_call", "structure", _linears, at(_last_call), ("stale value",)),
    Operator("one_row_late", "structure", _linears, at(_row_later)),
    Operator("bilinear", "structure", _upsamplers, at(_bilinear)),
]
