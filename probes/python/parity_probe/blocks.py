"""A tensor's numbers as float64, in blocks that stay in the cache, on several threads: what statistics and sketches are made of. Needs neither torch nor jax.

numpy lets other threads run while it computes, and every block is computed in memory that is there already: to get fresh memory of this size costs ten times
what filling it does.
"""
import concurrent.futures
import functools
import itertools
import os
import sys
import threading

import numpy as np

from . import element_types

BLOCK = 1 << 17   # numbers looked at at once for a sketch: of 1 << 15 to 1 << 19 the fastest, by 4 to 40 %
LARGE = 1 << 18   # … and for statistics, which need less memory for each
MOST_THREADS = 16
ROW = 1024        # numbers that BLAS multiplies at once: from 10000 on OpenBLAS would take threads of its own


class Buffers(threading.local):
    """A thread's memory for one block."""

    def __init__(self, size=LARGE):
        self.wide, self.index = np.empty(size), np.empty(size, np.int64)
        self.single, self.spare = np.empty(size, np.float32), np.empty(size, np.float32)


buffers = Buffers()


def _as_it_is(bits, memory):
    return bits


def _float16(bits, memory):
    single = memory.single[:bits.size]
    np.copyto(single, bits)
    return single


def _bfloat16(bits, memory):
    single = memory.single[:bits.size]
    np.left_shift(bits, np.uint32(16), out=single.view(np.uint32), dtype=np.uint32)
    return single


def _by_table(table, bits, memory):
    return np.take(table, bits, out=memory.single[:bits.size], mode="wrap")


@functools.lru_cache(maxsize=None)
def _float8(dtype):
    """The values of all 256 bit patterns (OCP OFP8: e4m3fn has no infinity)."""
    mantissa, bias = (3, 7) if dtype == "float8_e4m3fn" else (2, 15)
    raw = np.arange(256)
    exponent, fraction = (raw & 127) >> mantissa, raw & ((1 << mantissa) - 1)
    x = np.where(exponent == 0, np.ldexp(fraction / 2 ** mantissa, 1 - bias), np.ldexp(1 + fraction / 2 ** mantissa, exponent - bias))
    if dtype == "float8_e4m3fn":
        x[(raw & 127) == 127] = np.nan
    else:
        x[exponent == 31] = np.where(fraction[exponent == 31] == 0, np.inf, np.nan)
    return np.where(raw < 128, x, -x).astype(np.float32)


def numbers(dtype, raw):
    """(bits in one dimension, function to numbers, numbers per element) of `raw` (element_types.carrier of `dtype`); None for a dtype that has no numbers here
    (float4, float8 without sign or of other rules than float8_e4m3fn and float8_e5m2). The function takes some of the bits and makes float64 of them. With
    Buffers as second argument (at most LARGE bits) it is quicker: float32 in their memory from what numpy has no type for or is slow with, all else as it is."""
    flat, convert, parts = raw.reshape(-1), _as_it_is, 1
    if dtype == "bfloat16":
        convert = _bfloat16
    elif dtype in ("float8_e4m3fn", "float8_e5m2"):
        convert = functools.partial(_by_table, _float8(dtype))
    elif dtype.startswith(("float8_", "float4_")):
        return None
    elif dtype.startswith("complex"):
        flat, parts = flat.view({8: np.float64, 4: np.float32, 2: np.float16}[element_types.carrier(dtype).itemsize // 2]), 2
    if flat.dtype == np.float16:
        convert = _float16
    return flat, lambda bits, memory=None: convert(bits, memory) if memory is not None else convert(bits, Buffers(bits.size)).astype(np.float64), parts


def wide(x):
    """A block as float64, in the thread's memory."""
    out = buffers.wide[:x.size]
    np.copyto(out, x)
    return out


def extremes(x):
    """(minimum, maximum) of a block as floats; both NaN where one is in it."""
    return float(np.minimum.reduce(x)), float(np.maximum.reduce(x))


def dot(x, y=None):
    """Sum of the products of two blocks of one type, float32 or float64, or of the numbers of one. Rows of ROW are added up in that type, all else in float64."""
    rows = x.size // ROW
    end, total = rows * ROW, 0.0
    if rows:
        a = x[:end].reshape(rows, 1, ROW)
        b = _ones(x.dtype) if y is None else a.reshape(rows, ROW, 1) if y is x else y[:end].reshape(rows, ROW, 1)
        total = float(np.add.reduce(np.matmul(a, b), axis=None, dtype=np.float64))
    if end < x.size:
        tail = x[end:].astype(np.float64)
        total += float((tail if y is None else tail * y[end:]).sum())
    return total


@functools.lru_cache(maxsize=None)
def _ones(dtype):
    return np.ones((1, ROW, 1), dtype)


def zeros(x):
    """How many numbers of a block, float32 or float64, are 0. Their magnitudes are left in `buffers.spare` (float32) or take the place of `x` (float64). Where none is 0 the smallest
    magnitude says so sooner than counting would, and other threads run meanwhile."""
    single = x.dtype == np.float32
    magnitudes = np.abs(x, out=buffers.spare[:x.size] if single else x)
    return 0 if x.size and np.minimum.reduce(magnitudes) > 0 else x.size - int(np.count_nonzero(magnitudes.view(np.int32 if single else np.int64)))


def threads():
    """As many as the model may use: what torch was told, else OpenMP, else all cores that this process has."""
    torch = sys.modules.get("torch")
    if hasattr(torch, "get_num_threads"):
        return min(MOST_THREADS, torch.get_num_threads())
    told = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_THREADS, int(told) if told.isdecimal() and int(told) else cores)


@functools.lru_cache(maxsize=None)
def _pool():
    return concurrent.futures.ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="parity_probe")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # its threads stay in the parent


def each(work, count):
    """[work(0), …, work(count - 1)], computed by this thread and others; when it returns, none of them is at work any more."""
    if count == 1:
        with np.errstate(all="ignore"):
            return [work(0)]
    results, turns = [None] * count, itertools.count()

    def run():
        with np.errstate(all="ignore"):  # a thread's own
            for i in turns:  # each number goes to one thread
                if i >= count:
                    return
                results[i] = work(i)
    helpers = []
    try:
        helpers.extend(_pool().submit(run) for _ in range(min(threads(), count) - 1))
    except RuntimeError:  # no more threads, or the interpreter is shutting down
        pass
    try:
        run()
    finally:
        late = [helper for helper in helpers if not helper.cancel()]
        concurrent.futures.wait(late)
    for helper in late:
        helper.result()
    return results


class Sums:
    """Of each block of an array's memory the sum of its 64-bit words: equal where nothing was written (or words of a block have changed places, or the odds of
    2^-64). `of` may be called for the blocks in any order, on several threads. Or `words` says it for the whole array (native.words), and there are no blocks."""

    def __init__(self, step):
        """`step`: numbers of a block, an even number."""
        self.step, self._found, self.words = step, {}, None

    @classmethod
    def of_bits(cls, flat, step):
        """Those of an array in one dimension."""
        out = cls(step)
        each(lambda i: out.of(flat[i * step:(i + 1) * step], i), -(-flat.size // step))
        return out

    def of(self, block, number):
        memory = block.view(np.uint8)
        end = memory.size // 8 * 8
        self._found[number] = int(np.add.reduce(memory[:end].view(np.int64))), memory[end:].tobytes()

    def __eq__(self, other):
        return (self._found, self.words) == (other._found, other.words)
