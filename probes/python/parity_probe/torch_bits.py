"""A torch tensor's bits as numpy: a window on its memory where it lies row-major on the CPU, one copy otherwise. Nothing here reaches a dispatch mode."""
import torch

from . import element_types

_RAW = {torch.bfloat16: torch.int16}
_NAMES = {}


def dtype_name(dtype):
    """torch.float32 -> "float32"."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).split(".", 1)[1]
    return name


def storable(t):
    """True when `t` has elements in memory: not meta, sparse, quantised, nor wrapped by a functional transform."""
    return (t.layout == torch.strided and t.device.type != "meta" and not t.is_quantized and element_types.carrier(dtype_name(t.dtype)) is not None
            and not torch._C._functorch.is_functorch_wrapped_tensor(t) and not torch.utils._python_dispatch.is_traceable_wrapper_subclass(t))


def dense_strides(t):
    """Strides (in elements) of a tensor that is dense but not row-major; None for a row-major one and for one with gaps or overlaps."""
    if t.is_contiguous():
        return None
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n != 1):
        if stride != expected:
            return None
        expected *= size
    return t.stride()


def torch_bits(t):
    """(dtype name, C-contiguous numpy array, strides or None) of any storable tensor, on any device."""
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        name = dtype_name(t.dtype)
        strides = dense_strides(t)
        plain = t.detach().resolve_conj().resolve_neg().contiguous()
        carrier = element_types.carrier(name)
        if name == "complex32":
            plain = torch.view_as_real(plain)
            return name, plain.cpu().numpy().view(carrier).reshape(t.shape), strides
        if name == "bfloat16" or carrier.itemsize == 1 and name not in ("bool", "int8", "uint8"):
            plain = plain.view(torch.int16 if name == "bfloat16" else torch.uint8)
        return name, plain.cpu().numpy().view(carrier), strides
