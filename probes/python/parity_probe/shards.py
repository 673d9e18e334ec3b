"""Where a process stands in a mesh of ranks, and how its tensors are divided over it (FORMAT.md, "Ranks"). Needs neither torch nor jax.

A placement says what one axis of the mesh does to a tensor: "replicated", "split(2)" (along the tensor's axis 2, in the order of the ranks), "split(2,3)" (each
of 3 equal sections by itself: fused query, key and value), "partial" (each rank has a summand: the all-reduce is still to come).
"""
import re
import sys
from collections.abc import Mapping

from .errors import Error

_PLACEMENT = re.compile(r"replicated|partial|split\((-?\d+)(,[1-9]\d*)?\)")


def placements(spec, mesh):
    """{axis of the mesh: placement} as JSON, checked. Raises ValueError for an axis that `mesh` ([(name, size)]) has not, and for an unknown placement."""
    known, out = {name for name, _ in mesh}, {}
    for axis, text in dict(spec).items():
        text = str(text).replace(" ", "")
        if axis not in known:
            raise ValueError(f"placement '{text}' is of mesh axis '{axis}', which is not one of {', '.join(sorted(known))}")
        if not _PLACEMENT.fullmatch(text):
            raise ValueError(f"placement '{text}' of mesh axis '{axis}' is none of replicated, split(AXIS), split(AXIS,SECTIONS), partial")
        out[axis] = text
    return out


class Shard:
    """`mesh`: {axis name: number of ranks}, outermost first. `at`: {axis name: this rank's coordinate}. `specs`: {glob of paths: {axis name: placement}}, later
    ones win; what they leave open parity-check finds out by shape. Raises ValueError for a coordinate that the mesh has not, or a spec of another mesh."""

    def __init__(self, mesh, at, specs=()):
        self.mesh = [(str(name), int(size)) for name, size in dict(mesh).items()]
        if not self.mesh or any(size < 1 for _, size in self.mesh):
            raise ValueError(f"a mesh has one or more axes of one or more ranks, not {dict(mesh)}")
        if set(at) != {name for name, _ in self.mesh} or any(not 0 <= int(at[name]) < size for name, size in self.mesh):
            raise ValueError(f"coordinates {dict(at)} do not lie in the mesh {dict(self.mesh)}")
        self.at = [int(at[name]) for name, _ in self.mesh]
        self.specs = [(str(glob), placements(spec, self.mesh)) for glob, spec in dict(specs).items()]

    @classmethod
    def of(cls, shard):
        """None, a Shard, a mapping with its arguments, or a torch DeviceMesh (this process' place in it)."""
        if shard is None or isinstance(shard, cls):
            return shard
        if isinstance(shard, Mapping):
            return cls(**shard)
        if hasattr(shard, "get_coordinate") and hasattr(shard, "mesh_dim_names"):
            names = shard.mesh_dim_names or tuple(f"axis{i}" for i in range(shard.mesh.ndim))
            return cls(dict(zip(names, shard.mesh.shape)), dict(zip(names, shard.get_coordinate() or ())))
        raise TypeError(f"shard: expected a mapping with mesh, at and specs, or a DeviceMesh, not {type(shard).__name__}")

    def json(self):
        return {"mesh": [list(axis) for axis in self.mesh], "at": self.at, "specs": [list(spec) for spec in self.specs]}


def local(t):
    """(what this rank holds of a torch tensor, its placements or None). A tensor of torch.distributed that is still on its way is waited for."""
    spec = None
    functional = sys.modules.get("torch.distributed._functional_collectives")
    tensors = sys.modules.get("torch.distributed.tensor")
    if tensors is not None and isinstance(t, tensors.DTensor):
        names = t.device_mesh.mesh_dim_names or tuple(f"axis{i}" for i in range(t.device_mesh.ndim))
        spec = {name: _of_torch(placement) for name, placement in zip(names, t.placements)}
        t = t._local_tensor
    if functional is not None and isinstance(t, functional.AsyncCollectiveTensor):
        t.wait()
        t = t.elem
    return t, spec


def settle(op, result):
    """A collective (an op of torch.distributed) runs on after it returned: waits until its results are there. The model does so itself before it uses them."""
    if op.namespace == "_c10d_functional" and "wait_tensor" not in op.__name__:
        wait = sys.modules["torch"].ops._c10d_functional.wait_tensor
        for t in result if isinstance(result, (list, tuple)) else [result]:
            wait(t)
    elif op.namespace == "c10d":
        for work in result if isinstance(result, (list, tuple)) else [result]:
            if type(work).__name__ == "ScriptObject":
                work.wait()


def _of_torch(placement):
    text = str(type(placement).__name__)
    if text == "Replicate":
        return "replicated"
    if text == "Shard":
        return f"split({placement.dim})"
    if text == "Partial" and placement.reduce_op == "sum":
        return "partial"
    raise Error(f"placement {placement} of a DTensor cannot be recorded: known are Replicate, Shard and Partial('sum')")
