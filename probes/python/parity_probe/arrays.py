"""Any array -> (torch dtype name, C-contiguous numpy array of its bits). Knows numpy, torch, jax and ml_dtypes without importing the last three."""
import numpy as np

from . import element_types
from .printable import printable


def is_torch(array):
    """True for a torch.Tensor (torch must be loaded for one to exist)."""
    return any(c.__module__ == "torch" and c.__name__ == "Tensor" for c in type(array).__mro__)


_ADVICE = "hand over a numpy array (x.numpy(), numpy.array(x)), bfloat16 as float32 (x.astype(float32)): values that fit bf16 count as bf16"


def _unreadable(array):
    kind, dtype = type(array), getattr(array, "dtype", None)
    return f"numpy cannot read a {kind.__module__}.{kind.__qualname__}{f' of {dtype}' if dtype is not None else ''}"


def _as_numpy(array, name):
    """`array` as numpy reads it. Another library's array that numpy cannot read (MLX's bfloat16: no buffer format has it), or takes for a single object
    (tinygrad's Tensor), raises TypeError that names it and says what to hand over."""
    try:
        values = np.asarray(array)
    except MemoryError:
        raise
    except Exception as e:  # of whatever library
        raise TypeError(f"{name}: {_unreadable(array)} ({printable((str(e).splitlines() or [''])[0][:200])}); {_ADVICE}") from e
    if values.dtype == object and not isinstance(array, (np.ndarray, list, tuple)):
        raise TypeError(f"{name}: {_unreadable(array)} (it becomes one object); {_ADVICE}")
    return values


def bits(array, name):
    """(dtype name, bits) of `array`, any shape. Raises TypeError that names `name` when its elements are not numbers that parity-dump/1 knows."""
    if is_torch(array):
        from .torch_bits import check_storable, torch_bits
        check_storable(array, name)
        return torch_bits(array)[:2]
    values = _as_numpy(array, name)
    dtype = values.dtype.name
    if dtype in ("int2", "int4", "uint2", "uint4"):  # one byte each in ml_dtypes
        values = values.astype(np.int8 if dtype.startswith("int") else np.uint8)
        dtype = values.dtype.name
    carrier = element_types.carrier(dtype) if values.dtype.kind not in "OSUMm" else None
    if carrier is None or carrier.itemsize != values.dtype.itemsize:
        raise TypeError(f"{name}: cannot record elements of type {values.dtype} ({type(array).__name__}); known are torch's floats, integers, bool and complex")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    shape = values.shape
    return dtype, np.ascontiguousarray(values).reshape(shape).view(carrier)
