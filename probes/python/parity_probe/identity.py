"""Which value is this? Ids follow tensor objects, versions count the writes to the memory under them; neither keeps a tensor alive.

A tensor's Python object lives as long as its C++ object (PyTorch keeps it while a view, the autocast cache or the autograd graph holds the tensor), so a weak
reference to it is enough. Memory is followed by a weak reference to its storage, which also keeps the storage's address from being used again.
"""
import math

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import WeakIdRef

from .torch_bits import dense_strides


class Memory:
    """One storage: how often ops wrote to it, and which value brought it into the program (`root`: later strangers are views of it)."""
    __slots__ = ("ref", "writes", "root", "dtype", "first", "last", "uninitialised")

    def __init__(self, storage):
        self.ref, self.writes, self.root, self.dtype, self.first, self.last, self.uninitialised = StorageWeakRef(storage), 0, None, None, 0, 0, False


class Value:
    """One tensor object: its id, its memory, how many writes that had seen when the value was new, and which version is stored (-1: none)."""
    __slots__ = ("id", "ref", "memory", "base", "stored", "layout")

    def __init__(self, id_, ref, memory, layout):
        self.id, self.ref, self.memory, self.layout, self.stored = id_, ref, memory, layout, -1
        self.base = memory.writes if memory else 0

    @property
    def version(self):
        return self.memory.writes - self.base if self.memory else 0

    @property
    def key(self):
        """/values/<key> of the present version."""
        return f"{self.id}.{self.version}" if self.version else str(self.id)


def _storage(t):
    if t.is_nested:
        return None
    try:
        return t.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and other layouts have none
        return None


def _layout(t, storage):
    # A tensor whose `.data` was exchanged is another value though it is the same object: no op tells, so the layout has to.
    if storage is None:
        return (0, t.dtype)
    return (storage._cdata, tuple(t.shape), t.stride(), t.storage_offset(), t.dtype)


class ValueTable:
    """Living tensors <-> values."""

    def __init__(self):
        self._values, self._memories, self._next, self._purge_at = {}, {}, 0, 1024

    def find(self, t):
        """The Value of tensor object `t`, None when it is not known (or its data was exchanged behind our back)."""
        value = self._values.get(id(t))
        if value is None or value.ref() is not t or value.layout != _layout(t, _storage(t)):
            return None
        return value

    def known(self, t):
        """The Value of tensor object `t` whatever its layout is now; KeyError when there is none."""
        value = self._values[id(t)]
        if value.ref() is not t:
            raise KeyError(id(t))
        return value

    def memory(self, t):
        """The Memory under `t` when it is known, else None."""
        storage = _storage(t)
        return self._memories.get(storage._cdata) if storage is not None else None

    def add(self, t, as_leaf):
        """A new Value for `t`. In replay a leaf lies alone in memory, an op's result as the op left it: that is what `root` offsets refer to."""
        storage = _storage(t)
        memory = self._memory_for(storage)
        self._next += 1
        value = Value(self._next - 1, WeakIdRef(t, self._forget(id(t))), memory, _layout(t, storage))
        if memory is not None and memory.root is None:
            memory.root, memory.dtype = value.id, t.dtype
            dense = t.is_contiguous() or dense_strides(t) is not None
            memory.first, memory.last = (t.storage_offset(), t.storage_offset() + (t.numel() if dense else 0)) if as_leaf else (0, math.inf)
        self._values[id(t)] = value
        return value

    def refresh(self, t, value):
        """After an op wrote to `t`: it may have another shape or memory now (resize_, set_, t_)."""
        storage = _storage(t)
        value.layout = _layout(t, storage)
        memory = self._memory_for(storage)
        if memory is not value.memory:
            version, value.memory = value.version, memory
            value.base = (memory.writes if memory else 0) - version
        return value

    def _memory_for(self, storage):
        if storage is None:
            return None
        memory = self._memories.get(storage._cdata)
        if memory is None:
            if len(self._memories) > self._purge_at:
                self._memories = {k: m for k, m in self._memories.items() if not m.ref.expired()}
                self._purge_at = max(1024, 2 * len(self._memories))
            memory = self._memories[storage._cdata] = Memory(storage)
        return memory

    def _forget(self, address):
        values = self._values

        def forget(ref):
            value = values.get(address)
            if value is not None and value.ref is ref:
                del values[address]
        return forget
