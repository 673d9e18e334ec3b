"""Sketches: a few kB that stand for a tensor of any size, order-sensitive, linear, additive over shards (FORMAT.md, "Sketches").

A CountSketch (Charikar, Chen, Farach-Colton 2002): each number is added, with a random sign, to one of at most 4096 buckets; both follow from its place in the
whole tensor. So sketch(a) - sketch(b) = sketch(a - b), whose length estimates that of a - b: its square with a relative standard error of at most
sqrt(2 / buckets) (Thorup & Zhang 2012), itself with half of that. Sketches of parts add up to that of the whole.
"""
import contextlib
import functools
import math
import sys

import numpy as np

from . import blocks, native
from .blocks import BLOCK, numbers
from .errors import Error
from .sketch_places import Place, hashes, high_bits, places

VERSION = 1
SMALLEST, LARGEST, ELEMENTS_PER_BUCKET = 512, 4096, 512
_MASK = (1 << 64) - 1
_GROUP = 4 * BLOCK    # numbers that one thread sums up: the same on any number of threads, and so are the sums
_FIRST = 256          # numbers that mostly show already that they fit no narrower type
_NAN, _PLUS, _MINUS = np.uint64(1), np.uint64(3), np.uint64(5)
_spare = []           # memory of sketches that have settled: fresh memory is page faults, 0.2 ms a piece beside a model that frees much


def buckets_for(count):
    """How many buckets a recorder gives a tensor of `count` numbers: a power of two, one per 512 numbers, 512 to 4096."""
    return max(SMALLEST, min(LARGEST, 1 << max(0, (count // ELEMENTS_PER_BUCKET).bit_length() - 1)))


class Sketch:
    """Sketch and exact statistics of a tensor or of a part of one. Fields as in FORMAT.md; `place` is None for a whole tensor."""
    __slots__ = ("count", "buckets", "nan", "inf", "zero", "sum", "sum_squares", "min", "max", "specials", "fits", "place", "_signed")

    def __init__(self, buckets, fits=(), place=None):
        self.buckets, self.fits, self.place, self._signed = np.zeros(buckets), list(fits), place, None
        self.count = self.nan = self.inf = self.zero = self.specials = 0
        self.sum = self.sum_squares = 0.0
        self.min, self.max = np.inf, -np.inf

    def add(self, block, where, hashed):
        """Adds a block of numbers. `where`: the high bits of their hashes, as int64; `hashed()`: the hashes, wanted for what is not finite. After the last
        block comes `settle`."""
        if not block.size:
            return
        low, high = blocks.extremes(block)
        if not (low > 0 or high < 0):  # at once, while it is in the cache
            self.zero += blocks.zeros(block) if block.dtype == np.float32 else block.size - int(np.count_nonzero(block))
        x = blocks.wide(block)
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = self._take_specials(x, hashed())
        self.count += x.size
        self.min, self.max = min(self.min, low), max(self.max, high)
        self.sum_squares += blocks.dot(x, x)
        if self._signed is None:
            self._signed = _cleared()
        _scatter(self._signed, where, x)
        if self.fits:
            self.fits = _fitting(self.fits, x)

    def _take_specials(self, x, hashed):
        """Counts NaN and infinities, and puts 0 in their place; (minimum, maximum) of the others."""
        finite, nan = np.isfinite(x), np.isnan(x)
        for kind, factor in ((nan, _NAN), (x == np.inf, _PLUS), (x == -np.inf, _MINUS)):
            self.specials = (self.specials + int((hashed[kind] * factor).sum(dtype=np.uint64))) & _MASK
        some, nans = x[finite], int(nan.sum())
        self.nan, self.inf = self.nan + nans, self.inf + x.size - some.size - nans
        x[~finite] = 0.0
        return (float(some.min()), float(some.max())) if some.size else (np.inf, -np.inf)

    def settle(self):
        """The buckets and the sum of all that was added; returns self."""
        if self._signed is not None:
            self.sum += float(np.add.reduce(self._signed))  # until here each number has its own sign: a pass less over the numbers
            self.buckets += _folded(self._signed[:LARGEST] - self._signed[LARGEST:], self.buckets.size)
            _spare.append(self._signed)
            self._signed = None
        return self

    def join(self, other):
        """Adds another part of the tensor, which has no fewer buckets. They must not overlap; `merge` in sketch_files.py checks it."""
        self.buckets += _folded(other.buckets, self.buckets.size)
        for name in ("count", "nan", "inf", "zero", "sum", "sum_squares"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.specials = (self.specials + other.specials) & _MASK
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)
        self.fits = [name for name in self.fits if name in other.fits]

    def __add__(self, other):
        """The sketch of both parts together, with the fewer buckets of the two."""
        out = Sketch(min(self.buckets.size, other.buckets.size), self.fits)
        out.join(self)
        out.join(other)
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


def _cleared():
    """Memory for the sums of a sketch, of those of the positive signs and those of the negative; `settle` gives it back."""
    try:
        memory = _spare.pop()
    except IndexError:
        return np.zeros(2 * LARGEST)
    memory.fill(0)
    return memory


def _folded(buckets, size):
    """Fewer buckets: bucket b of many is bucket b mod `size` of few."""
    return buckets.reshape(-1, size).sum(axis=0) if buckets.size > size else buckets


def _fits_bfloat16(x):
    single = x.astype(np.float32)
    return bool((single == x).all()) and not np.bitwise_or.reduce(single.view(np.uint32)) & 0xFFFF


_FITS = {"float32": lambda x: bool((x.astype(np.float32) == x).all()), "float16": lambda x: bool((x.astype(np.float16) == x).all()),
         "bfloat16": _fits_bfloat16}
_NARROWER = {"float32": ("float16", "bfloat16"), "float64": ("float32", "float16", "bfloat16")}


def _scatter(sums, where, x):
    """sums[where] += x, one after the other. torch takes a third of numpy's time."""
    torch_bits = sys.modules.get("parity_probe.torch_bits")
    if torch_bits is not None:
        torch_bits.scatter_add(sums, where, x)
    else:
        sums += np.bincount(where, weights=x, minlength=sums.size)


def _undisturbed():
    torch_bits = sys.modules.get("parity_probe.torch_bits")
    return torch_bits.undisturbed() if torch_bits is not None else contextlib.nullcontext()


def _fitting(names, x):
    return [name for name in names if _FITS[name](x[:_FIRST]) and _FITS[name](x)]


def _natively(dtype, raw, size, sums):
    """The sketch of a whole tensor by the C++ recorder's code; None where that is not there or does not know it. `sums`: see sketch_bits."""
    found = native.sketch(dtype, raw, size, with_words=sums is not None)
    if found is None:
        return None
    described, buckets = found
    out = Sketch(0, described.fits)
    out.buckets = buckets
    for name in ("count", "nan", "inf", "zero", "sum", "sum_squares", "min", "max", "specials"):
        setattr(out, name, getattr(described, name))
    if sums is not None:
        sums.words = described.words
    return out


def _whole(flat, narrow, size, fits, sums):
    """The sketch of all numbers of a tensor. `sums`: see sketch_bits."""
    first_numbers = narrow(flat[:_FIRST])
    with np.errstate(all="ignore"):
        fits = _fitting(fits, first_numbers[np.isfinite(first_numbers)])  # mostly there is nothing left to be looked for

    def group(number):
        part = Sketch(size, fits)
        with _undisturbed():
            for first in range(number * _GROUP, min(flat.size, (number + 1) * _GROUP), BLOCK):
                bits = flat[first:first + BLOCK]
                if sums is not None:
                    sums.of(bits, first // BLOCK)
                part.add(narrow(bits, blocks.buffers), places(first, bits.size), functools.partial(hashes, first, bits.size))
        return part.settle()
    out = Sketch(size, fits)
    for part in blocks.each(group, -(-flat.size // _GROUP)):
        out.join(part)
    return out


def sketch_bits(dtype, raw, shard=None, buckets=None, sums=None):
    """The sketch of an array given as (torch dtype name, bits); see arrays.bits. `shard`: see Place.of. `buckets`: a power of two up to 4096; default: by size.
    `sums`: blocks.Sums to be filled on the way, of a whole array."""
    found = numbers(dtype, raw)
    if found is None:
        raise TypeError(f"elements of type {dtype} cannot be sketched")
    flat, narrow, parts = found
    place = Place.of(raw.shape, shard)
    whole = math.prod(place.whole if place else raw.shape) * parts
    size, fits = buckets or buckets_for(whole), _NARROWER.get(dtype, ())
    if place is None or place.is_whole:
        out = _natively(dtype, raw, size, sums) or _whole(flat, narrow, size, fits, sums)
        out.place = place
        return out
    out = Sketch(size, fits, place)
    with np.errstate(all="ignore"), _undisturbed():
        for where, hashed in place.blocks(parts):
            out.add(narrow(flat[where], blocks.buffers), high_bits(hashed).astype(np.int64), lambda hashed=hashed: hashed)
    return out.settle()


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


def record(file, key, dtype, raw, role="output", shard=None, buckets=None, sums=None):
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
        count = math.prod(shape) * found[2]
        size = buckets or buckets_for(count)
        if role == "weight":
            size = min(size, 1 << max(0, (count // 2).bit_length() - 1))
    if not sketched and (found is None or raw.nbytes <= 8 * size):
        file.value(key, dtype, raw)
        return {"d": dtype, "s": shape, "k": key}
    done = sketch_bits(dtype, raw, place, size, sums)
    file.value(key, "float64", done.buckets)
    return {"d": dtype, "s": shape, "sketch": done.json(key)}
