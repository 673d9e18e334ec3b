"""Another activation function, near (GELU erf for tanh) or far (GELU for SiLU)."""
import torch
from torch.nn import functional as F

from ..within import UNCHANGED, within
from .operator import Operator, at

_BY_CLASS = {"GELUActivation": "erf", "NewGELUActivation": "tanh", "FastGELUActivation": "tanh", "GELUTanh": "tanh", "BloomGelu": "tanh",
             "QuickGELUActivation": "quick", "SiLU": "silu", "SiLUActivation": "silu", "FP32SiLU": "silu", "ReLU": "relu"}
_OTHER = {"erf": lambda x: F.gelu(x, approximate="tanh"), "tanh": F.gelu, "quick": F.gelu, "silu": F.gelu, "relu": F.gelu}
_NEAR, _FAR = ("erf", "tanh", "quick"), ("silu", "relu")


def form(m):
    """erf, tanh, quick, silu, relu, or None where the module is no activation."""
    name = type(m).__name__
    if name in ("GELU", "GEGLU", "ApproximateGELU"):   # PyTorch's, and diffusers' with a projection inside
        return "quick" if name == "ApproximateGELU" else "tanh" if getattr(m, "approximate", "none") == "tanh" else "erf"
    return _BY_CLASS.get(name)


def _find(forms):
    return lambda model: [path for path, m in model.named_modules() if form(m) in forms]


def _change(m, patch):
    other = _OTHER[form(m)]
    if not any(True for _ in m.children()):
        patch(m, "forward", other)
        return

    def handler(func, args, kwargs):   # a projection and an activation in one module
        if func is F.gelu:
            return other(args[0])
        return other_quick(args, kwargs) if form(m) == "quick" and func is torch.sigmoid else UNCHANGED

    def other_quick(args, _kwargs):
        return torch.sigmoid(args[0] * (1.5957691 / 1.702))   # the constant of the tanh form's sigmoid
    within(m, patch, handler)


def _slope(m, patch):
    """SiLU with the sigmoid of QuickGELU."""
    patch(m, "forward", lambda x: x * torch.sigmoid(1.702 * x))


OPERATORS = [
    Operator("gelu_form", "activation", _find(_NEAR), at(_change), ("GELU form", "activation")),
    Operator("activation", "activation", _find(_FAR), at(_change), ("activation",)),
    Operator("silu_slope", "activation", _find(("silu",)), at(_slope), ("activation", "GELU form")),
]
