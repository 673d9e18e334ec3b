"""What the JAX tests share: reading recordings, comparing bits."""
import json

import h5py
import ml_dtypes
import numpy as np

import parity_probe  # noqa: F401
from parity_probe import element_types


class Recording:
    """Points of a parity-dump as numpy arrays: {(path, call): array} by role."""

    def __init__(self, path):
        with h5py.File(path, "r") as f:
            self.complete, self.model, self.producer = int(f.attrs["complete"]), f.attrs["model"], f.attrs["producer"]
            self.about = json.loads(f.attrs["provenance"])
            events = [json.loads(line) for line in f["trace/events"][()].tobytes().split(b"\n") if line]
            self.notes = [e["text"] for e in events if e["e"] == "note"]
            self.output, self.input, self.weight = {}, {}, {}
            for e in events:
                if e["e"] == "point":
                    dtype, bits = element_types.read_bits(f["values"][e["k"]])
                    getattr(self, e["role"])[e["path"], e["call"]] = np.asarray(bits).view(getattr(ml_dtypes, dtype, dtype))
            self.weight = {path: x for (path, _), x in self.weight.items()}
            self.linked = set(f["weights"])

    @property
    def paths(self):
        """Output paths in execution order, further calls as path#call."""
        return [path + (f"#{call}" if call else "") for path, call in self.output]


def same(a, b):
    """Bitwise equality of two arrays, of any library."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
