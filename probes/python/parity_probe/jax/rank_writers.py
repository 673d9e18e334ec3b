"""One process, many devices: what each device of a mesh holds goes into a file of its own, as if each were a rank."""
import os

import jax
import numpy as np

from ..shards import Shard
from ..writer import Writer


class RankWriters:
    """A Writer for each device of `mesh` (jax.sharding.Mesh), for a recording at "cand.h5": cand.rank0.h5, cand.rank1.h5, ... in the order of the mesh.

    Arrays that lie on its devices are written as each device has them, with the placements that their sharding says; what should be the same on several devices is
    written by each, so that copies can be compared. Any other array is a copy on all."""

    def __init__(self, path, mesh, **options):
        base, suffix = os.path.splitext(path)
        self._names, self._sizes = list(mesh.axis_names), list(mesh.devices.shape)
        self._places = {device: at for at, device in np.ndenumerate(mesh.devices)}
        axes = dict(zip(self._names, self._sizes))
        self._writers = {at: Writer(f"{base}.rank{number}{suffix}", shard=Shard(axes, dict(zip(self._names, at))), **options)
                         for number, at in enumerate(np.ndindex(*self._sizes))}

    def write(self, path, array, **options):
        """As Writer.write."""
        spec, parts = self._parts(array)
        for at, writer in self._writers.items():
            writer.write(path, parts[at], shard=spec, **options)

    def note(self, **text):
        for writer in self._writers.values():
            writer.note(**text)

    def close(self, complete=True):
        for writer in self._writers.values():
            writer.close(complete)

    def _parts(self, array):
        """({axis: placement}, {place: what its device has})."""
        shards = array.addressable_shards if isinstance(array, jax.Array) and array.is_fully_addressable else []
        if {shard.device for shard in shards} != set(self._places):
            whole = np.asarray(array)
            return {name: "replicated" for name in self._names}, dict.fromkeys(self._writers, whole)
        starts = {self._places[shard.device]: tuple(s.start or 0 for s in shard.index) for shard in shards}
        return {name: self._placement(axis, starts) for axis, name in enumerate(self._names)}, \
            {self._places[shard.device]: np.asarray(shard.data) for shard in shards}

    def _placement(self, axis, starts):
        """What begins elsewhere from one place of the mesh's axis to the next: nothing, or one axis of the array."""
        moved = {d for at, start in starts.items() for d, s in enumerate(start) if s != starts[(*at[:axis], 0, *at[axis + 1:])][d]}
        if len(moved) > 1:
            raise ValueError(f"mesh axis {self._names[axis]} divides an array along axes {sorted(moved)} at once, which cannot be recorded")
        return f"split({moved.pop()})" if moved else "replicated"
