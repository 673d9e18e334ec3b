"""Tensors that several modules return: a Dropout that drops nothing, a container whose last child has computed all. They are described once.

That nobody wrote to one in between is not taken on trust, as kernels that PyTorch does not know of leave no trace: the words of its memory are summed up anew,
a tenth of the work.
"""
import collections
import weakref

from . import blocks, native
from .torch_bits import torch_bits

KEPT = 16  # tensors that are remembered: who returns what another module returned does so soon after


def _version(t):
    """PyTorch's count of writes; None under inference mode, which does not count."""
    return None if t.is_inference() else t._version


def _sums(t, before):
    """Those of the memory as it is now, in the way that found `before`."""
    dtype, raw = torch_bits(t)[:2]
    if before.words is not None:
        out = blocks.Sums(before.step)
        out.words = native.words(dtype, raw)
        return out
    found = blocks.numbers(dtype, raw)
    return blocks.Sums.of_bits(found[0], before.step) if found is not None else None


class Repeats:
    """What the last tensors were described as."""

    def __init__(self, step):
        """`step`: how many numbers a block has."""
        self._step, self._known = step, collections.deque(maxlen=KEPT)

    def describe(self, t, fresh):
        """`fresh(sums)`, or what it returned for the same tensor with the same contents; `sums`: blocks.Sums that it fills on its way. `t`: row-major, on the CPU."""
        state = _version(t), t.data_ptr(), t.dtype, t.shape, t.stride()
        for reference, known, sums, about in self._known:
            if reference() is t and known == state and sums == _sums(t, sums):
                return about
        sums = blocks.Sums(self._step)
        about = fresh(sums)
        self._known.append((weakref.ref(t), state, sums, about))
        return about
