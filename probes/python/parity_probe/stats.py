"""Statistics: what a recording of level stats keeps of a tensor (FORMAT.md, `stats`), as probes/cpp/parity_probe/statistics.hpp computes them.

Each block of a tensor has its own; means and squared deviations are put together by the formula of Chan, Golub, LeVeque (1979), so that nothing cancels and the
digits are the same for any number of threads.
"""
import math
from typing import NamedTuple

import numpy as np

from . import blocks, native

KEPT = 2.0 ** -12          # a block whose squared deviations are a smaller part of its squares is gone over again, about its mean: 12 of 53 bits may cancel,
KEPT_IN_ROWS = 2.0 ** -2   # and 2 of 24
FEW = 1 << 16              # numbers of a block that are always added up in float64
SMALLEST, LARGEST = 2.0 ** -40, 2.0 ** 50   # largest magnitudes of a block of float32 numbers whose squares neither vanish nor overflow


class Moments(NamedTuple):
    """Of one block; from `zero` on of the finite numbers alone."""
    count: int
    nan: int = 0
    inf: int = 0
    zero: int = 0
    mean: float = 0.0
    deviations: float = 0.0  # sum of (x - mean)^2
    mean_abs: float = 0.0
    min: float = math.inf
    max: float = -math.inf


def _mean(x, total):
    """Also where the sum overflows."""
    mean = total / x.size
    return mean if math.isfinite(mean) else float((x / x.size).sum())


def _in_rows(x, low, high):
    """The Moments of a large block of float32 numbers, of whose rows float32 sums are good enough; None when they are not: it takes half the time."""
    size = x.size
    if x.dtype != np.float32 or size < FEW or not SMALLEST < max(-low, high) < LARGEST:
        return None
    total, squares = blocks.dot(x), blocks.dot(x, x)
    mean = total / size
    deviations = squares - total * mean
    if not deviations > KEPT_IN_ROWS * squares:
        return None
    if low > 0 or high < 0:
        return Moments(size, 0, 0, 0, mean, deviations, abs(mean), low, high)
    zero = blocks.zeros(x)
    return Moments(size, 0, 0, zero, mean, deviations, blocks.dot(blocks.buffers.spare[:size]) / size, low, high)


def _exactly(x, low, high):
    """The Moments of a block of finite float64 numbers, which are lost: rounded as sums of float64 are."""
    total, squares = float(x.sum()), blocks.dot(x, x)
    mean = total / x.size
    deviations = squares - total * mean
    if not deviations > KEPT * squares:  # nor when it is infinite: again, about the mean
        mean = _mean(x, total)
        apart = x - mean
        shift = float(apart.sum()) / x.size
        mean, deviations = mean + shift, max(blocks.dot(apart, apart) - x.size * shift * shift, 0.0)  # stays NaN
    zero = blocks.zeros(x)  # `x` are the magnitudes now
    return Moments(x.size, 0, 0, zero, mean, deviations, _mean(x, float(x.sum())), low, high)


def _of_finite(x, low, high):
    if low == high:
        return Moments(x.size, 0, 0, x.size if low == 0 else 0, low, 0.0, abs(low), low, high)
    return _in_rows(x, low, high) or _exactly(blocks.wide(x), low, high)


def moments(x):
    """The Moments of a block of numbers of any type; blocks.buffers is used."""
    low, high = blocks.extremes(x)
    if math.isfinite(low) and math.isfinite(high):
        return _of_finite(x, low, high)
    count, nan, x = x.size, int(np.isnan(x).sum()), x[np.isfinite(x)]
    found = _of_finite(x, *blocks.extremes(x)) if x.size else Moments(0)
    return found._replace(count=count, nan=nan, inf=count - nan - x.size)


def _together(parts):
    """The Moments of a tensor from those of its blocks."""
    count, nan, infinite, zero = (sum(p[i] for p in parts) for i in range(4))
    parts = [p for p in parts if p.count > p.nan + p.inf]
    low, high = min((p.min for p in parts), default=math.inf), max((p.max for p in parts), default=-math.inf)
    if low >= high:
        return Moments(count, nan, infinite, zero, low, 0.0, abs(low), low, high)
    finite = count - nan - infinite
    with np.errstate(all="ignore"):
        sizes = np.array([p.count - p.nan - p.inf for p in parts], dtype=np.float64)
        means, deviations, magnitudes = np.array([(p.mean, p.deviations, p.mean_abs) for p in parts]).T
        mean = float((sizes / finite * means).sum())
        return Moments(count, nan, infinite, zero, mean, float((deviations + sizes * (means - mean) ** 2).sum()), float((sizes / finite * magnitudes).sum()), low, high)


def together(parts):
    """The JSON of a tensor from the Moments of its blocks."""
    all_ = parts[0] if len(parts) == 1 else _together(parts)
    finite = all_.count - all_.nan - all_.inf
    numbers = {"mean": all_.mean, "std": math.sqrt(all_.deviations / finite) if finite else math.nan, "mean_abs": all_.mean_abs, "min": all_.min, "max": all_.max}
    return {"count": all_.count, "nan": all_.nan, "inf": all_.inf, "zero": all_.zero,
            **{name: x if finite and math.isfinite(x) else None for name, x in numbers.items()}}


def of_bits(dtype, raw, sums=None):
    """The JSON of an array given as (torch dtype name, bits); see arrays.bits. None where the elements are no numbers that blocks.numbers knows. `sums`:
    blocks.Sums to be filled on the way, by numpy."""
    found = native.statistics(dtype, raw) if sums is None else None
    if found is not None:
        return found
    found = blocks.numbers(dtype, raw)
    if found is None:
        return None
    flat, narrow, parts = found

    def work(i):
        bits = flat[i * blocks.LARGE:(i + 1) * blocks.LARGE]
        if sums is not None:
            sums.of(bits, i)
        x = narrow(bits, blocks.buffers)
        if parts == 2:  # a complex number counts with its magnitude; LARGE is even
            x = np.hypot(x[0::2], x[1::2], dtype=np.float64)
        return moments(x)
    return together(blocks.each(work, -(-flat.size // blocks.LARGE)))


def describe(array, name):
    """The event's description {"d", "s", "stats"} of an array (numpy, torch, jax, ml_dtypes); without "stats" where the elements are no numbers known here.
    Raises TypeError as arrays.bits does."""
    from .arrays import bits, is_torch
    if is_torch(array):
        from .torch_bits import check_storable
        from .torch_stats import describe as described
        check_storable(array, name)
        return described(array)
    dtype, raw = bits(array, name)
    found = of_bits(dtype, raw)
    return {"d": dtype, "s": list(raw.shape), **({"stats": found} if found is not None else {})}
