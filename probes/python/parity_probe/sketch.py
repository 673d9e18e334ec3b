"""Sketches: a few kB that stand for a tensor of any size, order-sensitive, linear, additive over shards (FORMAT.md, "Sketches").

A CountSketch (Charikar, Chen, Farach-Colton 2002): each number is added, with a random sign, to one of at most 4096 buckets; both follow from its place in the
whole tensor. So sketch(a) - sketch(b) = sketch(a - b), whose length estimates that of a - b: its square with a relative standard error of at most
sqrt(2 / buckets) (Thorup & Zhang 2012), itself with half of that. Sketches of parts add up to that of the whole.
"""
import numpy as np

from . import element_types
from .errors import Error

VERSION = 1
SMALLEST, LARGEST, ELEMENTS_PER_BUCKET = 512, 4096, 512
_SEED, _STEP, _FIRST, _SECOND = 0x70617269_74792D31, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB   # all but the seed: splitmix64's
_MASK, _BLOCK = (1 << 64) - 1, 1 << 16    # numbers looked at at once: they stay in the cache (measured: 1 << 14 a quarter slower, 1 << 18 the same)
_NAN, _PLUS, _MINUS = np.uint64(1), np.uint64(3), np.uint64(5)
_STEPS = np.arange(_BLOCK, dtype=np.uint64) * np.uint64(_STEP)


def buckets_for(count):
    """How many buckets a recorder gives a tensor of `count` numbers: a power of two, one per 512 numbers, 512 to 4096."""
    return max(SMALLEST, min(LARGEST, 1 << max(0, (count // ELEMENTS_PER_BUCKET).bit_length() - 1)))


def _mix(z):
    """splitmix64's output function (Steele, Lea, Flood 2014), in place."""
    shifted = np.empty_like(z)
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, None)):
        np.bitwise_xor(z, np.right_shift(z, np.uint64(shift), out=shifted), out=z)
        if factor is not None:
            np.multiply(z, np.uint64(factor), out=z)
    return z


def hashes(first, count):
    """The 64-bit hashes of `count` (at most 65536) successive numbers of the whole tensor from number `first` on."""
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
        group = max(1, _BLOCK // run)
        for row in range(0, rows, group):
            numbers = np.arange(row, min(rows, row + group))
            first = np.full(numbers.size, base, dtype=np.int64)
            for a, i in enumerate(np.unravel_index(numbers, outer) if outer else ()):
                first += i * (step[a] * strides[a])
            for column in range(0, run, _BLOCK):
                places = np.arange(column, min(run, column + _BLOCK))
                if step[axis] > 1:
                    places = places // inner * (step[axis] * inner) + places % inner
                index = np.add.outer(first, places).ravel()
                yield slice(row * run + column, row * run + column + index.size), _hashes_at(index)


class Sketch:
    """Sketch and exact statistics of a tensor or of a part of one. Fields as in FORMAT.md; `place` is None for a whole tensor."""
    __slots__ = ("count", "buckets", "nan", "inf", "zero", "sum", "sum_squares", "min", "max", "specials", "fits", "place")

    def __init__(self, buckets, fits=(), place=None):
        self.buckets, self.fits, self.place = np.zeros(buckets), list(fits), place
        self.count = self.nan = self.inf = self.zero = self.specials = 0
        self.sum = self.sum_squares = 0.0
        self.min, self.max = np.inf, -np.inf

    def add(self, x, hashed):
        """Adds numbers `x` (float64, one dimension) whose hashes are `hashed` (changed here)."""
        squares = float(np.einsum("i,i->", x, x))
        finite = x.size
        if not np.isfinite(squares):
            x, finite = self._without_specials(x, hashed)
            squares = float(np.einsum("i,i->", x, x))
        self.count += x.size
        self.zero += int(np.count_nonzero(x == 0)) - (x.size - finite)   # what was not finite is 0 now
        self.sum += float(x.sum())
        self.sum_squares += squares
        if finite == x.size and x.size:
            self.min, self.max = min(self.min, float(x.min())), max(self.max, float(x.max()))
        hashed >>= np.uint64(51)   # sign bit, then the 12 bits of the bucket
        both = np.bincount(hashed.view(np.int64), weights=x, minlength=2 * LARGEST)
        self.buckets += _folded(both[:LARGEST] - both[LARGEST:], self.buckets.size)
        if self.fits:
            self.fits = [name for name in self.fits if _FITS[name](x)]

    def _without_specials(self, x, hashed):
        finite = np.isfinite(x)
        if finite.all():   # large numbers whose squares overflow
            return x, x.size
        with np.errstate(over="ignore"):
            for kind, factor in ((np.isnan(x), _NAN), (x == np.inf, _PLUS), (x == -np.inf, _MINUS)):
                self.specials = (self.specials + int((hashed[kind] * factor).sum(dtype=np.uint64))) & _MASK
        self.nan += int(np.isnan(x).sum())
        self.inf += int(np.isinf(x).sum())
        some = x[finite]
        if some.size:
            self.min, self.max = min(self.min, float(some.min())), max(self.max, float(some.max()))
        return np.where(finite, x, 0.0), int(some.size)

    def __add__(self, other):
        """The sketch of both parts together. They must not overlap; `merge` in sketch_files.py checks it."""
        size = min(self.buckets.size, other.buckets.size)
        out = Sketch(size)
        out.buckets = _folded(self.buckets, size) + _folded(other.buckets, size)
        for name in ("count", "nan", "inf", "zero", "sum", "sum_squares"):
            setattr(out, name, getattr(self, name) + getattr(other, name))
        out.specials = (self.specials + other.specials) & _MASK
        out.min, out.max = min(self.min, other.min), max(self.max, other.max)
        out.fits = [name for name in self.fits if name in other.fits]
        return out

    def json(self, key):
        """The event's `sketch`."""
        def number(x):
            return x if np.isfinite(x) else None
        out = {"version": VERSION, "k": key, "count": self.count, "nan": self.nan, "inf": self.inf, "zero": self.zero, "sum": number(self.sum),
               "sum_squares": number(self.sum_squares), "min": number(self.min), "max": number(self.max), "specials": f"{self.specials:016x}", "fits": self.fits}
        if self.place is not None and not self.place.is_whole:
            out["part"] = self.place.json()
        return out

    @classmethod
    def from_json(cls, entry, buckets, whole):
        """From an event's `sketch`, its buckets and the whole's shape. Raises parity_probe.Error for another version."""
        if entry.get("version") != VERSION:
            raise Error(f"sketch version {entry.get('version')!r} is not {VERSION}, the one this program knows")
        out = cls(buckets.size, entry["fits"])
        out.buckets = np.array(buckets, dtype=np.float64)
        for name in ("count", "nan", "inf", "zero"):
            setattr(out, name, entry[name])
        for name, missing in (("sum", np.nan), ("sum_squares", np.inf), ("min", np.inf), ("max", -np.inf)):
            setattr(out, name, missing if entry[name] is None else entry[name])
        out.specials = int(entry["specials"], 16)
        if "part" in entry:
            out.place = Place(entry["part"]["size"], whole, entry["part"]["start"], entry["part"]["step"])
        return out


def _folded(buckets, size):
    """Fewer buckets: bucket b of many is bucket b mod `size` of few."""
    return buckets.reshape(-1, size).sum(axis=0) if buckets.size > size else buckets


def _fits_bfloat16(x):
    single = x.astype(np.float32)
    return bool((single == x).all()) and not np.bitwise_or.reduce(single.view(np.uint32)) & 0xFFFF


_FITS = {"float32": lambda x: bool((x.astype(np.float32) == x).all()), "float16": lambda x: bool((x.astype(np.float16) == x).all()),
         "bfloat16": _fits_bfloat16}
_NARROWER = {"float32": ("float16", "bfloat16"), "float64": ("float32", "float16", "bfloat16")}


def numbers(dtype, raw):
    """(bits in one dimension, function to float64, numbers per element) of `raw` (element_types.carrier of `dtype`); None for a dtype that has no numbers here
    (float4, float8 without sign or of other rules than float8_e4m3fn and float8_e5m2)."""
    flat = raw.reshape(-1)
    if dtype == "bfloat16":
        return flat, lambda b: (b.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64), 1
    if dtype in ("float8_e4m3fn", "float8_e5m2"):
        table = _float8(dtype)
        return flat, lambda b: table[b], 1
    if dtype.startswith(("float8_", "float4_")):
        return None
    if dtype.startswith("complex"):
        part = {8: np.float64, 4: np.float32, 2: np.float16}[element_types.carrier(dtype).itemsize // 2]
        return flat.view(part), lambda b: b.astype(np.float64), 2
    return flat, lambda b: b.astype(np.float64), 1


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
    return np.where(raw < 128, x, -x)


def sketch_bits(dtype, raw, shard=None, buckets=None):
    """The sketch of an array given as (torch dtype name, bits); see arrays.bits. `shard`: see Place.of. `buckets`: a power of two up to 4096; default: by size."""
    found = numbers(dtype, raw)
    if found is None:
        raise TypeError(f"elements of type {dtype} cannot be sketched")
    flat, widen, parts = found
    place = Place.of(raw.shape, shard)
    whole = int(np.prod(place.whole if place else raw.shape, dtype=object)) * parts
    out = Sketch(buckets or buckets_for(whole), _NARROWER.get(dtype, ()), place)
    with np.errstate(over="ignore", invalid="ignore"):
        if place is None or place.is_whole:
            for first in range(0, flat.size, _BLOCK):
                x = widen(flat[first:first + _BLOCK])
                out.add(x, hashes(first, x.size))
        else:
            for where, hashed in place.blocks(parts):
                out.add(widen(flat[where]), hashed)
    return out


def sketch(array, shard=None, buckets=None):
    """The sketch of an array (numpy, torch, jax, ml_dtypes), or of the part of a larger one that `shard` describes: (axis, offset, total), a list of such,
    or a Place. Raises TypeError for elements that are not numbers, ValueError for a part that does not lie in the whole."""
    from .arrays import bits
    dtype, raw = bits(array, "sketch")
    return sketch_bits(dtype, raw, shard, buckets)


def relative_l2(reference, candidate):
    """(||candidate - reference|| / ||reference|| as estimated from their sketches, its relative standard error)."""
    size = min(reference.buckets.size, candidate.buckets.size)
    difference = _folded(candidate.buckets, size) - _folded(reference.buckets, size)
    return float(np.linalg.norm(difference) / np.sqrt(reference.sum_squares)), float(1 / np.sqrt(2 * size))


def record(file, key, dtype, raw, role="output", shard=None, buckets=None):
    """Writes one tensor to `file` (DumpFile) at level sketch; returns the event's description: {"d", "s", "k"} for one that is no larger than its sketch,
    {"d", "s", "sketch"} for others, for parts of tensors, and for weights: these never stand in the file, so they get at most half as many buckets as numbers."""
    place = Place.of(raw.shape, shard)
    shape = list(place.whole) if place is not None else list(raw.shape)
    found = numbers(dtype, raw)
    sketched = role == "weight" or buckets is not None or place is not None and not place.is_whole
    if found is None:
        if sketched:
            raise TypeError(f"{dtype} tensors cannot be sketched: no weights, no parts")
        size = 0
    else:
        count = int(np.prod(shape, dtype=object)) * found[2]
        size = buckets or buckets_for(count)
        if role == "weight":
            size = min(size, 1 << max(0, (count // 2).bit_length() - 1))
    if not sketched and (found is None or raw.nbytes <= 8 * size):
        file.value(key, dtype, raw)
        return {"d": dtype, "s": shape, "k": key}
    done = sketch_bits(dtype, raw, place, size)
    file.value(key, "float64", done.buckets)
    return {"d": dtype, "s": shape, "sketch": done.json(key)}
