"""A torch tensor's bits as numpy: a window on its memory where it lies row-major on the CPU, one copy otherwise. Nothing here reaches a dispatch mode.

Not by Tensor.numpy(): that marks the storage as not resizable, and a model that calls resize_ later would fail because it was recorded.
"""
import contextlib

import numpy as np
import torch

from . import element_types

_NAMES = {}


def dtype_name(dtype):
    """torch.float32 -> "float32"."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).split(".", 1)[1]
    return name


def shape(t):
    """t.shape as a list; None for a nested tensor, which has none."""
    return None if t.is_nested else list(t.shape)


def storable(t):
    """True when `t` has elements in memory: not meta, sparse, quantised, nor wrapped by a functional transform."""
    return (t.layout == torch.strided and not t.is_nested and t.device.type != "meta" and not t.is_quantized and element_types.carrier(dtype_name(t.dtype)) is not None
            and not torch._C._functorch.is_functorch_wrapped_tensor(t) and not torch.utils._python_dispatch.is_traceable_wrapper_subclass(t))


def check_storable(t, name):
    """Raises TypeError that names `name` when `t` is not storable."""
    if not storable(t):
        raise TypeError(f"{name}: cannot record a {t.dtype} tensor of layout {t.layout} on {t.device} (sparse, meta, quantised or wrapped): "
                        "hand over its dense values")


MOST_SPREAD = 64  # a layout is kept when it takes at most so many times the memory of its elements


def _is_row_major(t):
    """To the letter: the stride of an axis of one element means nothing, yet convolutions and norms take (2, 1, 9, 9) for channels-last by it."""
    expected = 1
    for size, stride in zip(reversed(t.shape), reversed(t.stride())):
        if stride != expected:
            return False
        expected *= max(size, 1)
    return True


def dense_strides(t):
    """Strides (in elements) of a tensor that is dense but not row-major; None for a row-major one and for one with gaps or overlaps."""
    if not t.numel() or _is_row_major(t):
        return None
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n != 1):
        if stride != expected:
            return None
        expected *= size
    return t.stride()


def loose_strides(t):
    """Strides of a tensor with gaps between its elements (x[:, ::2]) or with elements that share memory (expanded); None for a dense one, and for one that
    cannot be laid out so again: elements that share memory in other ways, or are spread too far."""
    if not t.numel() or t.is_contiguous() or dense_strides(t) is not None:
        return None
    reach = own = 1
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n != 1 and s != 0):
        if stride < reach:
            return None
        reach, own = reach + (size - 1) * stride, own * size
    return t.stride() if reach <= MOST_SPREAD * own else None


def misalignment(t):
    """Address modulo 64: MKL's products sum in an order that depends on it. 0 for a tensor on another device or without elements."""
    return t.data_ptr() % 64 if t.device.type == "cpu" and t.numel() else 0


class _Window:
    """A row-major CPU tensor's memory for numpy.asarray, which keeps this object and so the tensor."""

    def __init__(self, t, carrier):
        self.tensor = t
        self.__array_interface__ = {"version": 3, "shape": tuple(t.shape), "data": (t.data_ptr(), True), "typestr": carrier.str, "descr": carrier.descr}


def torch_bits(t):
    """(dtype name, C-contiguous numpy array, dense strides or None, misalignment in bytes, loose strides or None) of any storable tensor, on any device."""
    with undisturbed():
        name = dtype_name(t.dtype)
        carrier = element_types.carrier(name)
        plain = t.detach().cpu().resolve_conj().resolve_neg().contiguous()
        bits = np.asarray(_Window(plain, carrier)) if plain.numel() else np.empty(tuple(t.shape), carrier)
        return name, bits, dense_strides(t), misalignment(t), loose_strides(t)


@contextlib.contextmanager
def undisturbed():
    """Nothing that watches or transforms tensors on this thread sees what is done inside."""
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunctionSubclass(), torch._C._DisableFuncTorch(), torch.no_grad():
        yield


def scatter_add(sums, where, x):
    """sums[where] += x for numpy arrays of one dimension, float64 and int64, one element after the other. To be called `undisturbed`."""
    torch.from_numpy(sums).scatter_add_(0, torch.from_numpy(where), torch.from_numpy(x))
