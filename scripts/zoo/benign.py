"""Benign changes: the same arithmetic by other kernels, in another order, or on another setting of the machine. None moves a rounding between ops.

Those of scripts/selftest_models/kernels.py, and what ports of whole models do besides. Each is put around a run by `active`, or builds or runs the model
another way (Change.attention, Change.run).
"""
import contextlib
from dataclasses import dataclass, field
from typing import Callable

import torch
from torch.nn import functional as F

import mkl_vendor
from selftest_models import capture, kernels

from .places import norm_kind, norms


@dataclass(frozen=True, eq=False)
class Change:
    name: str
    active: Callable = contextlib.nullcontext      # a context manager
    applies: Callable = lambda entry, model: True
    prepare: Callable | None = None                # prepare(model, patch), before the run
    attention: str | None = None                   # transformers' attn_implementation
    listen: Callable | None = None                 # listen(entry, model, dtype) -> boundaries, where it is no single run
    environment: dict = field(default_factory=dict)


# --- norms ---------------------------------------------------------------------------------------------------------------
# Their results are contiguous, as native_layer_norm's: on a strided input a Linear takes mm and add for addmm, which rounds once more.
def _norm_in_float64(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    wide = (t if t is None else t.double() for t in (weight, bias))
    return F.layer_norm(x.double(), normalized_shape, *wide, eps).to(x.dtype).contiguous()


def _norm_one_pass(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Variance as mean of squares less square of the mean, in float32."""
    axes, v = tuple(range(-len(normalized_shape), 0)), x.float()
    mean = v.mean(axes, keepdim=True)
    y = (v - mean) * torch.rsqrt((v * v).mean(axes, keepdim=True) - mean * mean + eps)
    y = y if weight is None else y * weight.float()
    return (y if bias is None else y + bias.float()).to(x.dtype).contiguous()


def _norm_two_passes(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    axes, v = tuple(range(-len(normalized_shape), 0)), x.float()
    d = v - v.mean(axes, keepdim=True)
    y = d / torch.sqrt((d * d).mean(axes, keepdim=True) + eps)
    y = y if weight is None else y * weight.float()
    return (y if bias is None else y + bias.float()).to(x.dtype).contiguous()


def _group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    wide = (t if t is None else t.double() for t in (weight, bias))
    return F.group_norm(x.double(), num_groups, *wide, eps).to(x.dtype)


# --- convolutions as matrix products ---------------------------------------------------------------------------------------
def _unfolded(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """conv2d by im2col and one product per group, in float32."""
    if x.dim() != 4 or isinstance(padding, str):
        return F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    stride, padding, dilation = ((v, v) if isinstance(v, int) else tuple(v) for v in (stride, padding, dilation))
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(x.shape[2:], padding, dilation, weight.shape[2:], stride)]
    columns = F.unfold(x.float(), weight.shape[2:], dilation, padding, stride).unflatten(1, (groups, -1))
    y = (weight.float().flatten(1).unflatten(0, (groups, -1)) @ columns).flatten(1, 2).unflatten(-1, size)
    return (y if bias is None else y + bias.float().view(-1, 1, 1)).to(x.dtype)


def _channels_last(model, patch):
    """Images lie with their channels last in memory from the first convolution on."""
    model.to(memory_format=torch.channels_last)
    for m in model.modules():
        if isinstance(m, torch.nn.Conv2d):
            right = m.forward
            patch(m, "forward", lambda x, *a, right=right, **k: right(x.contiguous(memory_format=torch.channels_last), *a, **k))


def _has_convolutions(_entry, model):
    return any(isinstance(m, torch.nn.Conv2d) for m in model.modules())


# --- one sample after the other ----------------------------------------------------------------------------------------------
def _part(value, i, batch):
    if torch.is_tensor(value):
        return value[i:i + 1] if value.dim() and value.shape[0] == batch else value
    return type(value)(_part(v, i, batch) for v in value) if isinstance(value, (list, tuple)) else value


def by_sample(entry, model, dtype):
    """Each sample by itself, boundaries joined again; what does not depend on the batch must be equal in both."""
    calls = entry.calls(dtype)
    batch = max(t.shape[0] for t in calls[0].values() if torch.is_tensor(t) and t.dim())
    runs = [capture.boundaries(model, lambda m, i=i: entry.forward(m, [{k: _part(v, i, batch) for k, v in c.items()} for c in calls])) for i in range(batch)]
    joined = []
    for parts in zip(*runs, strict=True):
        values = [p.value for p in parts]
        joined.append((parts[0], values))
    return joined


def _join(entry, model, dtype, plain):
    """The joined boundaries in the shapes of `plain`."""
    found = []
    for (first, values), whole in zip(by_sample(entry, model, dtype), plain, strict=True):
        if first.key != whole.key:
            raise ValueError(f"{first.key} where the whole batch has {whole.key}")
        value = values[0] if values[0].shape == whole.value.shape else torch.cat(values) if values[0].dim() else values[0]
        if value.shape != whole.value.shape:
            raise ValueError(f"{first.path}: {tuple(value.shape)} where the whole batch has {tuple(whole.value.shape)}")
        found.append(capture.Boundary(first.path, first.call, value, whole.again))
    return found


# --- the list ----------------------------------------------------------------------------------------------------------------
def _swap(table):
    return lambda: kernels.Swap(table)


def _has_norm(kind):
    return lambda _entry, model: any(norm_kind(m) == kind for _p, m in norms(model))


def _has_sdpa(entry, model):
    return entry.attention != "eager" and any("ttention" in type(m).__name__ for m in model.modules())


def _kernel(name, applies=lambda entry, model: True):
    return Change(name, lambda: kernels.active(name), applies)


def _of_transformers(wanted):
    return lambda entry, model: entry.library == "transformers" and entry.attention != wanted and _has_sdpa_or_eager(model)


def _has_sdpa_or_eager(model):
    return any("ttention" in type(m).__name__ for m in model.modules())


CHANGES = {change.name: change for change in [
    Change("eager attention", applies=_of_transformers("eager"), attention="eager"),
    Change("sdpa attention", applies=lambda e, m: e.attention == "eager" and getattr(type(m), "_supports_sdpa", False), attention="sdpa"),
    _kernel("attention in the model's dtype", _has_sdpa),
    _kernel("attention with online softmax", _has_sdpa),
    _kernel("attention by the math kernel", _has_sdpa),
    _kernel("products split over K"),
    Change("channels last", applies=_has_convolutions, prepare=_channels_last),
    Change("convolutions by im2col", _swap({F.conv2d: _unfolded}), _has_convolutions),
    Change("one sample at a time", applies=lambda e, m: e.batch, listen=_join),
    Change("norms in float64", _swap({F.layer_norm: _norm_in_float64, F.group_norm: _group_norm}),
           lambda e, m: _has_norm("layer")(e, m) or _has_norm("group")(e, m)),
    Change("norms in two passes", _swap({F.layer_norm: _norm_two_passes}), _has_norm("layer")),
    Change("norms in one pass", _swap({F.layer_norm: _norm_one_pass}), _has_norm("layer")),
    _kernel("1/sqrt for rsqrt", _has_norm("rms")),
    _kernel("activations by the formula"),
    _kernel("oneDNN off"),
    _kernel("one thread"),
    Change("ATen without vectors", environment={"ATEN_CPU_CAPABILITY": "default"}),
    Change("oneDNN for AVX2", environment={"ONEDNN_MAX_CPU_ISA": "AVX2"}),
    Change("MKL, compatible", environment={"MKL_CBWR": "COMPATIBLE"}),
    Change("all for AVX2", environment={"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}),
    Change("MKL's kernels for Intel", environment={mkl_vendor.MAKER: "intel"}),
    Change("MKL's kernels for AMD", environment={mkl_vendor.MAKER: "other"}),
]}
COMPANY = (None, "products split over K", None, "attention with online softmax", None, "norms in two passes")   # with the faults, in turn


def counterparts(found, plain):
    """[(boundary, the plain run's)], of those that both have: eager attention also returns its weights. Raises ValueError where they are in another order."""
    here, there = {b.key: b for b in found}, {p.key: p for p in plain}
    common = [key for key in here if key in there]
    if common != [key for key in there if key in here]:
        raise ValueError("boundaries in another order than the plain run's")
    return [(here[key], there[key]) for key in common]


def put_around(change, model, patch):
    """Makes the change hold in `patch`, an ExitStack (selftest_models.family.Patches)."""
    if change.prepare:
        change.prepare(model, patch)
    patch.enter_context(change.active())
