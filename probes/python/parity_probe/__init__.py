"""Records what a model computed, for parity-check; the file format is probes/FORMAT.md.

    with parity_probe.record(model, "ref.h5"):      # torch.nn.Module, unmodified
        model(**inputs)
    with parity_probe.jax.record(model, "cand.h5"):  # flax module or JAX function: see parity_probe.jax
        model(x)
    with parity_probe.Writer("cand.h5") as w:       # anything else: numpy, torch, jax, ml_dtypes arrays
        w.write("blocks.0.norm1", array)

Needs numpy and h5py alone; torch is imported only by `record` and `point`, jax only by `parity_probe.jax`.
"""
import importlib
import sys

from .errors import Error, Stopped
from .version import __version__
from .writer import Writer

__all__ = ["Error", "Stopped", "Writer", "point", "record", "__version__"]


def __getattr__(name):
    if name == "jax":  # on first use: it needs JAX
        return importlib.import_module(".jax", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def record(model, path, level="op", lines=True, shard=None):
    """Context manager: records every forward call of `model` (a torch.nn.Module) inside the block to the HDF5 file `path`.

    level "op" stores every value that an op computes; "module" stores only leaves, inputs and outputs of modules (replay recomputes the rest); "sketch" stores
    no values and no program, but a few kB of each module's outputs, the model's inputs and weights, for models too large for the others (parity_probe.sketch);
    "stats" stores mean, standard deviation, extremes, zeros, NaN and infinities of the same tensors alone (parity_probe.stats).
    `lines`: keeps with every op the line of the user's code that called it ("models/llama/modeling_llama.py:312 in forward"; no absolute paths).
    `shard`: where this process stands in a mesh of ranks, each of which writes its own file: {"mesh": {"dp": 2, "tp": 2}, "at": {"dp": 0, "tp": 1}, "specs": {glob of
    paths: {"tp": "split(2)"}}} or a torch DeviceMesh (parity_probe.shards). Placements of DTensors are read from them.
    The model's results stay bitwise what they are without recording. Yields the recorder. See `parity_probe.recorder.Recorder` for what happens to an
    existing file and to an interrupted one.

    Raises TypeError (no nn.Module), ValueError (unknown level), parity_probe.Error (path cannot be written, or writing failed, or nothing was called).
    """
    from .recorder import Recorder
    return Recorder(model, path, level, lines, shard)


def point(name, tensor):
    """Names `tensor` (any shape and dtype) inside a running `record`, so that it becomes a boundary; returns it unchanged. Outside a recording it does nothing."""
    recorder = sys.modules.get("parity_probe.recorder")
    if recorder is not None:
        recorder.point(name, tensor)
    return tensor
