"""What the JAX tests share: reading recordings, comparing bits, asking parity-check."""
import contextlib
import json
import pathlib

import h5py
import jax
import ml_dtypes
import numpy as np

import parity_probe  # noqa: F401
from parity_probe import element_types
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]


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


class Reference:
    """A recording of a PyTorch model: its configuration, weights and the inputs of each call as numpy arrays."""

    def __init__(self, path):
        self.path = path
        with h5py.File(path, "r") as f:
            self.config = json.loads(f.attrs["provenance"])["config"]
            self.weights = {name: x[()] for name, x in f["weights"].items()}
            self.inputs = [{name: x[()] for name, x in f["inputs"][call].items()} for call in sorted(f["inputs"], key=int)]


@contextlib.contextmanager
def quick_compilation():
    """XLA compiles in half the time, to slower code: for ports with faults, of which there are many. What is green is compiled as users do."""
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


def compare(reference, candidate, *options):
    """(exit status, the report) of `parity-check compare`."""
    report = pathlib.Path(candidate).with_suffix(".json")
    done = program.run("compare", reference, candidate, "--json", report, "--quiet", *options)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(report.read_text())


def found(report):
    """(path, call, name of the fault) of the first divergence, None when there is none."""
    first = report["first_divergence"]
    return first and (first["path"], first["call"], first["diagnosis"].split(" (")[0].split(":")[0])


def named(name, function):
    """`function` under another name: what stands in for a port's function is recorded under that one's."""
    function.__name__ = name
    return function


def check_fault(reference, candidate, wanted, *options):
    """The fault is red at the module where it begins, under its name: `wanted`, (path, call, name)."""
    status, report = compare(reference, candidate, *options)
    assert (status, found(report)) == (1, wanted), report["first_divergence"]


def check_honest(reference, candidate, *options):
    """-> the report of a port without faults: every row passes, nothing of the reference is left uncompared."""
    status, report = compare(reference, candidate, *options)
    others = [(row["path"], row["call"], row["verdict"], row["diagnosis"]) for row in report["ops"] if row["verdict"] != "pass"]
    assert (status, report["verdict"], report["first_divergence"], others) == (0, "pass", None, [])
    assert report["coverage"][""]["uncovered"] == 0
    return report
