"""Benign changes: the same arithmetic by another kernel. None adds or removes a rounding of what passes between ops.

Each is a table of PyTorch functions and what stands in for them (a TorchFunctionMode swaps them below the model's code), or a setting of PyTorch.
A product or norm in bfloat16 accumulates in float32 and rounds once, in PyTorch as here.
"""
import contextlib
import os

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode


class Swap(TorchFunctionMode):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.table.get(func, func)(*args, **(kwargs or {}))


# --- products ---------------------------------------------------------------------------------------------------------
def _wide_linear(product):
    def linear(x, weight, bias=None):
        y = product(x.float(), weight.float())
        return (y if bias is None else y + bias.float()).to(x.dtype)
    return linear


def _products(linear):
    return {F.linear: linear, torch.addmm: lambda bias, x, weight: linear(x, weight.t(), bias)}


def _split_k(x, w):
    half = x.shape[-1] // 2
    return x[..., :half] @ w[:, :half].t() + x[..., half:] @ w[:, half:].t()


def _split_matmul(a, b):
    half, low = a.shape[-1] // 2, a.dtype
    a, b, axis = a.float(), b.float(), max(b.dim() - 2, 0)  # a vector is summed along its only axis
    first, rest = b.split([half, a.shape[-1] - half], dim=axis)
    return (a[..., :half] @ first + a[..., half:] @ rest).to(low)


def _transposed(x, w):
    return torch.einsum("nk,...k->n...", w, x).movedim(0, -1)


def _outer_sums(x, w):
    """Adds up one input feature after the other."""
    total = x[..., :1] * w[:, 0]
    for k in range(1, x.shape[-1]):
        total = total + x[..., k:k + 1] * w[:, k]
    return total


def _pieces(axis, size):
    """The kernel itself, on a few rows at a time."""
    def linear(x, weight, bias=None):
        return torch.cat([F.linear(part, weight, bias) for part in x.split(size, dim=axis)], dim=axis)
    return linear


def _three_products(x, weight, bias=None):
    parts = weight.chunk(3)
    biases = [None] * len(parts) if bias is None else bias.chunk(3)
    return torch.cat([F.linear(x, w.contiguous(), b) for w, b in zip(parts, biases)], dim=-1)


def _conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """A convolution as a sum of products, one per tap (dilation and groups 1)."""
    n = weight.dim() - 2
    stride, padding = ((v,) * n if isinstance(v, int) else tuple(v) for v in (stride, padding))
    x32 = F.pad(x.float(), [p for q in reversed(padding) for p in (q, q)])
    size = [(have - k) // s + 1 for have, k, s in zip(x32.shape[2:], weight.shape[2:], stride)]
    total = 0
    for tap in torch.cartesian_prod(*map(torch.arange, weight.shape[2:])).view(-1, n).tolist():
        window = x32[(..., *[slice(t, t + (m - 1) * s + 1, s) for t, m, s in zip(tap, size, stride)])]
        total = total + torch.einsum("oc,bc...->bo...", weight[(..., *tap)].float(), window)
    return (total if bias is None else total + bias.float().view(-1, *[1] * n)).to(x.dtype)


# --- attention --------------------------------------------------------------------------------------------------------
def _mask(q, k, attn_mask, is_causal):
    if is_causal:
        attn_mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros(attn_mask.shape).masked_fill(~attn_mask, float("-inf"))
    return attn_mask


def _same_heads(q, k, v):
    repeat = q.shape[-3] // k.shape[-3]
    return q, k.repeat_interleave(repeat, -3), v.repeat_interleave(repeat, -3)


def _attention(inside):
    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        q, k, v = _same_heads(query, key, value)
        return inside(q, k, v, _mask(q, k, attn_mask, is_causal), scale or q.shape[-1] ** -0.5).to(query.dtype)
    return {F.scaled_dot_product_attention: attention}


def _in_float32(q, k, v, mask, scale):
    s = (q.float() * scale) @ k.float().transpose(-1, -2)
    return torch.softmax(s if mask is None else s + mask, -1) @ v.float()


def _in_own_dtype(q, k, v, mask, scale):
    s = q @ k.transpose(-1, -2) * scale
    return torch.softmax(s if mask is None else s + mask.to(s.dtype), -1) @ v


def _online(q, k, v, mask, scale, chunk=4):
    """Keys in chunks of four with a running maximum (the algorithm of flash attention)."""
    q, k, v = q.float(), k.float(), v.float()
    top = q.new_full((*q.shape[:-1], 1), -1e30)   # finite: a chunk may be masked as a whole
    total, out = torch.zeros_like(top), torch.zeros_like(q[..., :1] * v[..., :1, :])
    for i in range(0, k.shape[-2], chunk):
        s = q @ k[..., i:i + chunk, :].transpose(-1, -2) * scale
        if mask is not None:
            s = s + mask[..., i:i + chunk]
        higher = torch.maximum(top, s.amax(-1, keepdim=True))
        shrink, e = torch.exp(top - higher), torch.exp(s - higher)
        total, out, top = total * shrink + e.sum(-1, keepdim=True), out * shrink + e @ v[..., i:i + chunk, :], higher
    return out / total


# --- norms and pointwise functions ------------------------------------------------------------------------------------
def _layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    x32 = x.float()
    d = x32 - x32.mean(-1, keepdim=True)
    y = d / torch.sqrt((d * d).mean(-1, keepdim=True) + eps)
    y = y if weight is None else y * weight.float()
    return (y if bias is None else y + bias.float()).to(x.dtype)


def _rms_norm(x, normalized_shape, weight=None, eps=None):
    x32 = x.float()
    y = x32 / torch.sqrt((x32 * x32).mean(-1, keepdim=True) + eps)
    return (y if weight is None else y * weight.float()).to(x.dtype)


def _halved_mean(x, dim=None, keepdim=False, **kwargs):
    if dim not in (-1, (-1,), [-1]) or x.dtype != torch.float32:
        return x.mean(dim, keepdim=keepdim, **kwargs) if dim is not None else x.mean(**kwargs)
    half = x.shape[-1] // 2
    return (x[..., half:].sum(-1, keepdim=keepdim) + x[..., :half].sum(-1, keepdim=keepdim)) / x.shape[-1]


def _gelu(x, approximate="none"):
    x32 = x.float()
    if approximate == "tanh":
        y = 0.5 * x32 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x32 + 0.044715 * x32 * x32 * x32)))
    else:
        y = 0.5 * x32 * (1 + torch.erf(x32 * 0.5**0.5))
    return y.to(x.dtype)


def _silu(x, inplace=False):
    x32 = x.float()
    return (x32 / (1 + torch.exp(-x32))).to(x.dtype)


def _softmax(x, dim=None, _stacklevel=3, dtype=None):
    """Less the maximum plus one half instead of the maximum."""
    x32 = x.float()
    e = torch.exp(x32 - x32.amax(dim, keepdim=True) - 0.5)
    return (e / e.sum(dim, keepdim=True)).to(dtype or x.dtype)


def _normalize(x, p=2.0, dim=1, eps=1e-12, out=None):
    x32 = x.float()
    return (x32 / torch.sqrt((x32 * x32).sum(dim, keepdim=True)).clamp_min(eps)).to(x.dtype)


TABLES = {
    "products split over K": {**_products(_wide_linear(_split_k)),
                              **dict.fromkeys((torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__), _split_matmul)},
    "products on transposed operands": _products(_wide_linear(_transposed)),
    "products summed feature by feature": _products(_wide_linear(_outer_sums)),
    "products five rows at a time": _products(_pieces(-2, 5)),
    "products one sample at a time": _products(_pieces(0, 1)),
    "products in three parts": _products(_three_products),
    "convolutions tap by tap": {F.conv2d: _conv, F.conv3d: _conv},
    "attention in float32": _attention(_in_float32),
    "attention in the model's dtype": _attention(_in_own_dtype),
    "attention with online softmax": _attention(_online),
    "norms by the formula": {F.layer_norm: _layer_norm, F.rms_norm: _rms_norm, F.normalize: _normalize},
    "1/sqrt for rsqrt": {torch.rsqrt: lambda x: 1 / torch.sqrt(x), torch.Tensor.mean: _halved_mean},
    "activations by the formula": {F.gelu: _gelu, F.silu: _silu},
    "softmax with another maximum": {F.softmax: _softmax},
}
TABLES["every kernel another"] = {**TABLES["products split over K"], **TABLES["attention with online softmax"], **TABLES["norms by the formula"],
                                  **TABLES["1/sqrt for rsqrt"], **TABLES["activations by the formula"], **TABLES["convolutions tap by tap"]}


@contextlib.contextmanager
def _threads(n):
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SETTINGS = {
    "one thread": lambda: _threads(1),
    "oneDNN off": lambda: torch.backends.mkldnn.flags(enabled=False),
    "attention by the math kernel": lambda: sdpa_kernel(SDPBackend.MATH),
}

# set before PyTorch loads, so these pairs are made in a process of their own
ENVIRONMENTS = {
    "no vector instructions": {"ATEN_CPU_CAPABILITY": "default"},
    "AVX2 kernels": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}


def here(name):
    """Can this change be made in the running process?"""
    return all(os.environ.get(k) == v for k, v in ENVIRONMENTS.get(name, {}).items())


def active(name):
    """Context manager in which the benign change `name` holds (None: none). Raises KeyError for an unknown name."""
    if name is None or name in ENVIRONMENTS:
        return contextlib.nullcontext()
    return SETTINGS[name]() if name in SETTINGS else Swap(TABLES[name])
