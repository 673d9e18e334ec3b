"""A rounding too many, one too few, or the wrong one."""
import torch
from torch.nn import functional as F

from selftest_models import changes as c
from selftest_models.family import BF16, FP32, truncated

from ..places import attentions, linears, norm_kind, norms, writes
from ..within import UNCHANGED, on_attention, within
from .operator import Operator, at, only

_WIDE = (torch.float32, torch.float64)


def _leaves(model):
    return [p for p, m in model.named_modules() if p and not list(m.children()) and (list(m.parameters(recurse=False)) or "ct" in type(m).__name__)
            and not isinstance(m, torch.nn.Embedding)]


def _through(dtype):
    def rounded(t):
        return t.to(dtype).to(t.dtype) if torch.is_tensor(t) and t.is_floating_point() else t
    return at(lambda m, patch: c.after(m, patch, rounded))


def _low_weight(m, _patch):
    m.weight.copy_(m.weight.to(torch.bfloat16).to(m.weight.dtype))


def _narrow_input(m, patch):
    c.before(m, patch, lambda x: x.to(torch.bfloat16).to(x.dtype))


def _target(func, args, kwargs):
    """The dtype that this call of Tensor.to or Tensor.float asks for, or None."""
    if func is torch.Tensor.float:
        return torch.float32
    return next((a for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.dtype)), None) if func is torch.Tensor.to else None


def _is_upcast(func, args, kwargs):
    return _target(func, args, kwargs) in _WIDE and args[0].dtype in (torch.bfloat16, torch.float16)


def _no_upcast(m, patch):
    """The module's code without its .float(): every step rounds to half width."""
    def handler(func, args, kwargs):
        return args[0] if _is_upcast(func, args, kwargs) else UNCHANGED
    within(m, patch, handler)


def _late_downcast(m, patch):
    """What the module rounds on the way stays wide until it returns."""
    kept = []

    def handler(func, args, kwargs):
        if _target(func, args, kwargs) is torch.bfloat16 and args[0].dtype is torch.float32:
            kept.append(args[0])
            return args[0]
        return UNCHANGED

    def narrow(result):
        return result.to(torch.bfloat16) if torch.is_tensor(result) and result.dtype is torch.float32 and kept else result
    within(m, patch, handler, on_result=narrow)


def _that_write(pattern):
    return lambda model: [p for p, m in model.named_modules() if p and writes(m, pattern)]


def _truncate(m, patch):
    def product(self, x):
        w = self.weight if isinstance(self, torch.nn.Linear) else self.weight.t()
        return truncated(F.linear(x.float(), w.float(), None if self.bias is None else self.bias.float()))
    c.forward(m, patch, product)


def _gated(model):
    return [p for p, m in model.named_modules() if {"gate_proj", "up_proj", "down_proj", "act_fn"} <= {n for n, _ in m.named_children()}]


def _fused_gate(m, patch):
    """Activation and product in float32, rounded once: a fused kernel that the reference has not."""
    def fused(self, x, *_args, **_kwargs):
        inner = F.silu(self.gate_proj(x).float()) if type(self.act_fn).__name__.startswith("SiLU") else self.act_fn(self.gate_proj(x).float())
        return self.down_proj((inner * self.up_proj(x).float()).to(x.dtype))
    c.forward(m, patch, fused)


def _rounded_query(m, patch):
    def change(a):
        return {**a, "query": a["query"].to(torch.bfloat16).to(a["query"].dtype)}
    within(m, patch, on_attention(change))


OPERATORS = [
    Operator("output_through_bf16", "cast", _leaves, _through(torch.bfloat16), ("extra rounding",), FP32),
    Operator("output_through_fp16", "cast", _leaves, _through(torch.float16), ("extra rounding",), FP32),
    Operator("weight_in_bf16", "cast", lambda model: only(linears(model)), at(_low_weight), ("extra rounding", "weights: bf16"), FP32),
    Operator("input_through_bf16", "cast", lambda model: only(linears(model)), at(_narrow_input), ("extra rounding",), FP32),
    Operator("query_in_bf16", "cast", lambda model: only(attentions(model)), at(_rounded_query), ("extra rounding",), FP32),
    Operator("norm_steps_in_bf16", "cast", lambda model: only(norms(model), lambda m: norm_kind(m) == "layer" and len(m.normalized_shape) == 1),
             at(lambda m, patch: c.forward(m, patch, c.layer_norm(low=True))), ("extra rounding",), BF16),
    Operator("no_upcast", "cast", _that_write(r"\.float\(|float32"), at(_no_upcast), ("extra rounding",), BF16),
    Operator("late_downcast", "cast", _that_write(r"\.to\("), at(_late_downcast), ("missing rounding",), BF16),
    Operator("fused_gate", "cast", _gated, at(_fused_gate), ("missing rounding",), BF16),
    Operator("truncation", "cast", lambda model: only(linears(model)), at(_truncate), ("truncation",), BF16),
]
