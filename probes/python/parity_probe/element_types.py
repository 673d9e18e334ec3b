"""Element types: torch's dtype name <-> how its bits lie in HDF5 and in numpy. Bits are written as they are; HDF5 never converts a float.

Its own float32 -> bfloat16 conversion rounds ties away from even, flushes subnormals and saturates, so a bfloat16 array travels as uint16 bits under
a file type that says what the bits mean (then h5dump and h5py show real numbers).
"""
import functools

import h5py
import numpy as np
from h5py import h5t

_PLAIN = {name: np.dtype(name) for name in (
    "float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128")}


def carrier(dtype):
    """numpy dtype whose bits stand for one element of torch dtype name `dtype`; None when there is none (quantised, sub-byte structs)."""
    if dtype in _PLAIN:
        return _PLAIN[dtype]
    if dtype == "bfloat16":
        return np.dtype(np.uint16)
    if dtype == "complex32":
        return np.dtype([("r", np.float16), ("i", np.float16)])
    return np.dtype(np.uint8) if dtype.startswith(("float8_", "float4_")) else None


@functools.lru_cache(maxsize=None)
def file_type(dtype):
    """HDF5 type of torch dtype name `dtype`. Raises KeyError for one that `carrier` does not know."""
    if dtype == "bfloat16":
        t = h5t.IEEE_F32LE.copy()
        t.set_fields(15, 7, 8, 0, 7)
        t.set_size(2)
        t.set_ebias(127)
        return t
    if carrier(dtype) is None:
        raise KeyError(dtype)
    return h5t.py_create(carrier(dtype), logical=True)  # logical: bool becomes h5py's enum {FALSE, TRUE}


def read_bits(dataset):
    """An h5py.Dataset's elements as `carrier` of its `dtype` attribute: (dtype name, numpy array). Raises parity_probe.Error without that attribute."""
    from .errors import Error
    name = dataset.attrs.get("dtype")
    if name is None:
        raise Error(f"{dataset.file.filename}: dataset {dataset.name} has no attribute 'dtype': not written by parity_probe")
    name = name.decode() if isinstance(name, bytes) else str(name)
    if name != "bfloat16":
        return name, dataset[()]
    out = np.empty(dataset.shape, np.uint16)
    if out.size:
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, out, mtype=dataset.id.get_type())
    return name, out
