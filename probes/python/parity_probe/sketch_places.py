"""Where a number of a sketched tensor goes: the hash of its place in the whole tensor, and the places that a part's numbers have there (FORMAT.md, "Sketches")."""
import functools

import numpy as np

from . import blocks
from .blocks import BLOCK

_SEED, _STEP, _FIRST, _SECOND = 0x70617269_74792D31, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB   # all but the seed: splitmix64's
_MASK = (1 << 64) - 1
_STEPS = np.arange(BLOCK, dtype=np.uint64) * np.uint64(_STEP)
_REMEMBERED = 1 << 26   # the first so many places are hashed once a process, not once a tensor: 2 bytes for each number of the largest tensor, 128 MB at most


def _mix(z):
    """splitmix64's output function (Steele, Lea, Flood 2014), in place."""
    shifted = np.empty_like(z)
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, None)):
        np.bitwise_xor(z, np.right_shift(z, np.uint64(shift), out=shifted), out=z)
        if factor is not None:
            np.multiply(z, np.uint64(factor), out=z)
    return z


def hashes(first, count):
    """The 64-bit hashes of `count` (at most BLOCK) successive numbers of the whole tensor from number `first` on."""
    return _mix(_STEPS[:count] + np.uint64((first * _STEP + _SEED) & _MASK))


def _hashes_at(places):
    return _mix(places.astype(np.uint64) * np.uint64(_STEP) + np.uint64(_SEED))


class Place:
    """Where a part lies in the whole: its element i along axis a is element start[a] + step[a] * i of the whole's."""

    def __init__(self, shape, whole, start=None, step=None):
        """shape, whole: sizes of the part and of the whole. Raises ValueError when the part does not lie inside."""
        self.shape, self.whole = tuple(map(int, shape)), tuple(map(int, whole))
        self.start = tuple(map(int, start)) if start is not None else (0,) * len(self.whole)
        self.step = tuple(map(int, step)) if step is not None else (1,) * len(self.whole)
        fits = len(self.shape) == len(self.whole) == len(self.start) == len(self.step) and all(
            b >= 0 and s >= 1 and (n == 0 or b + s * (n - 1) < w) for n, w, b, s in zip(self.shape, self.whole, self.start, self.step))
        if not fits:
            raise ValueError(f"a part of shape {list(self.shape)} from {list(self.start)} in steps of {list(self.step)} does not lie in a tensor of shape "
                             f"{list(self.whole)}")

    @classmethod
    def of(cls, shape, shard):
        """`shard`: None (the array is the whole), (axis, offset, total), a list of such for several axes, or a Place."""
        if shard is None or isinstance(shard, Place):
            return shard
        whole, start = list(shape), [0] * len(shape)
        for axis, offset, total in [shard] if np.isscalar(shard[0]) else shard:
            whole[axis], start[axis] = total, offset
        return cls(shape, whole, start)

    @property
    def is_whole(self):
        return self.shape == self.whole

    def json(self):
        return {"start": list(self.start), "step": list(self.step), "size": list(self.shape)}

    def overlaps(self, other):
        """Does any element belong to both? Exact for steps of 1; for others the arithmetic progressions are compared."""
        def common(b, s, n, c, t, m):
            first = set(range(b, b + s * n, s)) if s > 1 or t > 1 else None
            return bool(first & set(range(c, c + t * m, t))) if first is not None else b < c + m and c < b + n
        return all(n and m and common(b, s, n, c, t, m) for b, s, n, c, t, m in zip(self.start, self.step, self.shape, other.start, other.step, other.shape))

    def blocks(self, parts):
        """For blocks of the array's numbers in row-major order: (slice, hashes). `parts`: numbers an element has (2 for complex)."""
        whole, shape = [*self.whole, parts], [*self.shape, parts]
        start, step = [*self.start, 0], [*self.step, 1]
        strides = [int(np.prod(whole[a + 1:], dtype=object)) for a in range(len(whole))]
        axis = len(whole) - 1
        while axis > 0 and shape[axis] == whole[axis] and step[axis - 1] == 1:   # what lies together in the whole
            axis -= 1
        run, inner, outer = int(np.prod(shape[axis:], dtype=object)), strides[axis], shape[:axis]
        base, rows = sum(b * s for b, s in zip(start, strides)), int(np.prod(outer, dtype=object))
        if run == 0:
            return
        group = max(1, BLOCK // run)
        for row in range(0, rows, group):
            numbers = np.arange(row, min(rows, row + group))
            first = np.full(numbers.size, base, dtype=np.int64)
            for a, i in enumerate(np.unravel_index(numbers, outer) if outer else ()):
                first += i * (step[a] * strides[a])
            for column in range(0, run, BLOCK):
                places = np.arange(column, min(run, column + BLOCK))
                if step[axis] > 1:
                    places = places // inner * (step[axis] * inner) + places % inner
                index = np.add.outer(first, places).ravel()
                yield slice(row * run + column, row * run + column + index.size), _hashes_at(index)


def high_bits(hashed):
    """The sign bit, then the 12 bits of the bucket."""
    return hashed >> np.uint64(51)


@functools.lru_cache(maxsize=_REMEMBERED // BLOCK)
def _remembered(block):
    return high_bits(hashes(block * BLOCK, BLOCK)).astype(np.uint16)


def places(first, count):
    """The high bits of the hashes of a block's numbers from number `first` (a multiple of BLOCK) on, as int64 in the thread's memory."""
    out = blocks.buffers.index[:count]
    np.copyto(out, _remembered(first // BLOCK)[:count] if first < _REMEMBERED else high_bits(hashes(first, count)), casting="unsafe")
    return out
