"""Arguments of an op, and non-tensor arguments of a module, as the JSON of FORMAT.md."""
import torch

from .torch_bits import dtype_name


def special_float(x):
    """A float as JSON: itself, or {"float": ...} where JSON has no number."""
    if x != x:
        return {"float": "nan"}
    if x in (float("inf"), float("-inf")):
        return {"float": "inf" if x > 0 else "-inf"}
    return x


_ENCODERS = {
    torch.dtype: lambda x: {"dtype": dtype_name(x)},
    torch.device: lambda x: {"device": str(x)},
    torch.layout: lambda x: {"layout": str(x).split(".")[1]},
    torch.memory_format: lambda x: {"memory_format": str(x).split(".")[1]},
    torch.Generator: lambda x: {"generator": None},
    complex: lambda x: {"complex": [special_float(x.real), special_float(x.imag)]},
    float: special_float,
}


def encode(x, tensor):
    """One argument of an op as JSON; `tensor` maps a tensor to its JSON. An object JSON has no form for becomes its class name."""
    if x is None or type(x) in (int, bool, str):
        return x
    if isinstance(x, torch.Tensor):
        return tensor(x)
    if isinstance(x, (list, tuple)):
        return [encode(a, tensor) for a in x]
    encoder = _ENCODERS.get(type(x))
    if encoder is not None:
        return encoder(x)
    if isinstance(x, torch.SymInt):
        return int(x)
    if isinstance(x, dict):
        return {str(k): encode(v, tensor) for k, v in x.items()}
    return class_name(x)


def class_name(x):
    """Names an object without asking it to print itself (printing one that holds tensors computes with them)."""
    kind = x if isinstance(x, type) else type(x)
    name = getattr(x, "__qualname__", None) if callable(x) else None
    return f"<{getattr(x, '__module__', None) or kind.__module__}.{name}>" if name else f"<{kind.__module__}.{kind.__qualname__}>"


def literal(x):
    """A module's non-tensor argument as JSON."""
    if isinstance(x, str) and len(x) > 1000:
        return x[:1000] + "…"
    return encode(x, lambda t: f"<tensor {dtype_name(t.dtype)}>")
