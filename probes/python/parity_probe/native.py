"""Statistics and sketches of whole arrays by the C++ recorder's own code, which goes over an array once where numpy does so several times: a shared library that
is optional (native/describe.cpp, built by `pip install` where there is a compiler for C++17).

It lies beside this file, or where the environment variable PARITY_PROBE_LIBRARY says; that one empty: none. Where it is missing, or of another interface, every
function returns None, and so for what it does not know; then numpy does it. ctypes lets go of the interpreter's lock meanwhile.
"""
import ctypes
import functools
import math
import os
import pathlib

import numpy as np

from . import blocks

INTERFACE = 1   # describe.cpp's kInterface
VARIABLE, NAME = "PARITY_PROBE_LIBRARY", "libparity-probe.so"
_FITS = (1, "float32"), (2, "float16"), (4, "bfloat16")
_COUNTS, _SIZE, _POINTER = ctypes.c_int64, ctypes.c_size_t, ctypes.c_void_p


class Statistics(ctypes.Structure):
    """ParityProbeStatistics."""
    _fields_ = [(name, _COUNTS) for name in ("count", "nan", "inf", "zero")] + [(name, ctypes.c_double) for name in ("mean", "std", "mean_abs", "min", "max")]


class Sketched(ctypes.Structure):
    """ParityProbeSketch; `buckets` comes as an array beside it."""
    _fields_ = [(name, _COUNTS) for name in ("count", "nan", "inf", "zero")] + [(name, ctypes.c_double) for name in ("sum", "sum_squares", "min", "max")] + [
        ("specials", ctypes.c_uint64), ("words", ctypes.c_uint64), ("_fits", ctypes.c_int)]

    @property
    def fits(self):
        return [name for bit, name in _FITS if self._fits & bit]


class Library:
    """The functions of describe.cpp. What is opened is never closed: its threads wait until the process ends."""

    def __init__(self, path):
        """Raises OSError where it cannot be loaded, AttributeError or ValueError where it is another one."""
        functions = ctypes.CDLL(os.fspath(path))
        if functions.parity_probe_interface() != INTERFACE:
            raise ValueError(f"{path}: interface {functions.parity_probe_interface()} is not {INTERFACE}, the one this program knows")
        functions.parity_probe_open.restype = _POINTER
        array = _POINTER, _SIZE, ctypes.c_char_p, _POINTER, _SIZE
        self.statistics, self.sketch, self.words = functions.parity_probe_statistics, functions.parity_probe_sketch, functions.parity_probe_words
        self.statistics.argtypes = *array, _POINTER
        self.sketch.argtypes = *array, ctypes.c_bool, _SIZE, _POINTER, _POINTER
        self.words.argtypes = *array, _POINTER
        self.describer = functions.parity_probe_open()
        if not self.describer:
            raise ValueError(f"{path}: no memory")


@functools.lru_cache(maxsize=None)
def library():
    """The Library, or None; looked for once a process."""
    path = os.environ.get(VARIABLE)
    path = pathlib.Path(__file__).with_name(NAME) if path is None else path
    try:
        return Library(path) if path and os.path.isfile(path) else None
    except (OSError, AttributeError, ValueError):
        return None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=library.cache_clear)  # its threads stay in the parent: a new one, and the old one is never touched


def _address(array):
    return array.__array_interface__["data"][0]


def statistics(dtype, raw):
    """The JSON of the statistics of an array, given as (torch dtype name, C-contiguous bits). None, too, where float64 cannot hold its sums."""
    return statistics_at(dtype, _address(raw), raw.size)


def statistics_at(dtype, address, count):
    """The same of so many elements that lie together in memory."""
    own, found = library(), Statistics()
    if own is None or own.statistics(own.describer, blocks.threads(), dtype.encode(), address, count, ctypes.byref(found)):
        return None
    return _json(found)


def _json(found):
    """FORMAT.md's `stats`; None where a number is not finite though elements are."""
    if found.count == found.nan + found.inf:
        return {"count": found.count, "nan": found.nan, "inf": found.inf, "zero": 0, **dict.fromkeys(("mean", "std", "mean_abs", "min", "max"))}
    if not (math.isfinite(found.mean) and math.isfinite(found.std) and math.isfinite(found.mean_abs)):
        return None
    return {"count": found.count, "nan": found.nan, "inf": found.inf, "zero": found.zero, "mean": found.mean, "std": found.std, "mean_abs": found.mean_abs,
            "min": found.min, "max": found.max}


def sketch(dtype, raw, size, with_words=False):
    """(Sketched, `size` buckets) of an array; None, too, where float64 cannot hold its sum. `with_words`: also its `words`, as the function below has them."""
    own = library()
    if own is None:
        return None
    found, buckets = Sketched(), np.empty(size)
    if own.sketch(own.describer, blocks.threads(), dtype.encode(), _address(raw), raw.size, with_words, size, _address(buckets), ctypes.byref(found)):
        return None
    return (found, buckets) if math.isfinite(found.sum) else None


def words(dtype, raw):
    """A number that says whether the array's memory has been written to: equal where it has not, and otherwise at odds of 2^-64, unless words that lie near each
    other have changed places."""
    own, found = library(), ctypes.c_uint64()
    if own is None or own.words(own.describer, blocks.threads(), dtype.encode(), _address(raw), raw.size, ctypes.byref(found)):
        return None
    return found.value
