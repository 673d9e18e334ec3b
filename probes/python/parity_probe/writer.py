"""Writer: records arrays under names, for ports that are not a torch.nn.Module. What it writes is a parity-dump/1 file without a program."""
import contextlib
import os
import sys
import threading
from collections.abc import Mapping

from . import lines, provenance, shards, sketch, stats, stream
from .arrays import bits, is_torch
from .dump_file import DumpFile
from .errors import Error, Stopped
from .shards import Shard
from .version import __version__

ROLES = ("output", "input", "weight")
LEVELS = ("module", "sketch", "stats")


class Writer:
    """Writes named tensors to the HDF5 file `path`, or sends them to the `parity-check watch REF` that listens at "parity://HOST:PORT".

    `config` (a mapping), `model` (a name) and `producer` go into the file's provenance. An existing file is replaced when the first tensor is written (or
    at close). What was written a second ago is in the file whatever happens to the process (all of it when the program ends without `close`); `complete` is 0
    until `close`. The first failure to write ends the recording: it is raised, and raised again by every later call, so that no tensor is missing unnoticed.
    A stream is opened at once; sending waits while the listener is busy, and parity_probe.Stopped says where its --stop found the first divergence.
    A path is the reference's module path where there is one ("blocks.0.norm1"), so that parity-check pairs it without a map.
    """

    def __init__(self, path, config=None, model="", producer=None, about=None, level="module", shard=None):
        """`about`: a function that returns further provenance (a dict), asked once, when the file is made. `level` "sketch" stores a few kB of each tensor
        instead of its values (see parity_probe.sketch), "stats" its statistics alone (parity_probe.stats), both in a file only. `shard`: where this process stands in a mesh of ranks (see parity_probe.shards.Shard). Raises ValueError (unknown level, sketches or statistics to be streamed), parity_probe.Error when `path`
        lies in no writable folder or nothing listens there."""
        if level not in LEVELS:
            raise ValueError(f"parity_probe.Writer: level must be one of {', '.join(LEVELS)}, not {level!r}")
        self.path = os.fspath(path)
        self._about = {"level": level, "producer": producer or f"parity_probe.Writer {__version__}", "model": model}
        self._config, self._more, self._file, self._closed, self._failure = config, about, None, False, None
        self._shard = Shard.of(shard)
        self._next, self._calls, self._lock = 0, {}, threading.Lock()
        self._streams = stream.address_of(self.path) is not None
        if not self._streams:
            check_path(self.path)
            return
        if level != "module":
            raise ValueError(f"{self.path}: level {level} cannot be streamed")
        self._open()

    def write(self, path, array, role="output", shard=None, source=None, stacklevel=1):
        """Records `array` (numpy, torch, jax, ml_dtypes; any shape) as tensor `path`; writing a path again records its next call. Returns that call number.

        `shard`, at level sketch: `array` is the part of tensor `path` that begins at `offset` of `axis`, whose size is `total` there: (axis, offset, total), a
        list of such for several axes, or a parity_probe.sketch.Place for any regular part. parity_probe.sketch_files.merge adds the ranks' files up.
        At level module, of a Writer with a mesh: how the mesh divides it, {"tp": "split(2)"}; a DTensor says it itself.
        `source` says where in the code the tensor was computed; default: the line that calls `write`, "" for none. `stacklevel`, as warnings.warn has it: 2 is
        the line that calls the function that calls `write`, for a helper of your own around it. Raises ValueError (unknown role, a stacklevel below 1, a part that does not lie in the whole), TypeError (elements that are not numbers), parity_probe.Error (closed, disk full, ...).
        """
        if role not in ROLES:
            raise ValueError(f"{self.path}: role must be one of {', '.join(ROLES)}, not {role!r}")
        if stacklevel < 1:
            raise ValueError(f"{self.path}: stacklevel must be 1 (the caller of write) or more, not {stacklevel}")
        path = str(path)
        spec, shard = self._spec(shard)
        if is_torch(array) and self._shard is not None:
            array, found = shards.local(array)
            spec = found if spec is None else spec
        spec = {"shard": shards.placements(spec, self._shard.mesh)} if spec is not None else {}
        place = None
        if self._about["level"] == "stats":
            about = stats.describe(array, f"{self.path}: {path}")
        else:
            dtype, raw = bits(array, f"{self.path}: {path}")
            place = sketch.Place.of(raw.shape, shard)
        source = lines.of_caller(sys._getframe(1), stacklevel) if source is None else str(source)
        with self._lock:
            with self._writing() as file:
                call = self._calls.get((path, role), 0)
                self._calls[path, role] = call + 1
                key = str(self._next)
                self._next += 1
                if self._about["level"] == "sketch":
                    about = sketch.record(file, key, dtype, raw, role, place)
                elif self._about["level"] == "module":
                    file.value(key, dtype, raw)
                    about = {"d": dtype, "s": list(raw.shape), "k": key}
                    if role == "weight" and call == 0:
                        file.link("weights", path, key)
                file.event(e="point", path=path, call=call, role=role, v=int(key), **about, **spec, **({"src": source} if source else {}))
        return call

    def _spec(self, shard):
        """(placements, part of a sketched tensor) of what `write` was given: a mapping, or anything else."""
        if isinstance(shard, Mapping):
            if self._shard is None:
                raise ValueError(f"{self.path}: placements need a mesh: Writer(..., shard={{'mesh': ..., 'at': ...}})")
            return shard, None
        if shard is not None and self._about["level"] != "sketch":
            raise ValueError(f"{self.path}: a part given by its place can be recorded at level sketch only; give placements ({{'tp': 'split(2)'}})")
        return None, shard

    def note(self, **text):
        """Leaves a remark (JSON values) in the event stream."""
        with self._lock, self._writing() as file:
            file.event(e="note", **text)

    @contextlib.contextmanager
    def _writing(self):
        """The open file; what fails to be written to it ends the recording."""
        if self._failure is not None:
            raise self._failure if isinstance(self._failure, Stopped) else Error(str(self._failure))
        file = self._open()
        try:
            yield file
        except Error as e:
            self._failure = e
            file.abandon()
            raise

    def _open(self):
        if self._closed:
            raise Error(f"{self.path}: the writer is closed")
        if self._file is None:
            more = provenance.json_safe(self._more()) if self._more else {}
            if self._shard is not None:
                more["shard"] = self._shard.json()
            self._file = (stream.StreamFile if self._streams else DumpFile)(self.path, provenance={**provenance.collect(self._config), **more}, **self._about)
        return self._file

    def flush(self):
        """Makes everything written so far readable by others."""
        with self._lock, self._writing() as file:
            file.flush()

    def close(self, complete=True):
        """Ends the file; `complete=False` marks it as interrupted. A second call does nothing."""
        with self._lock:
            if not self._closed:
                with self._writing() as file:
                    self._closed = True
                    file.close(complete)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close(complete=kind is None)
        except Error:
            if kind is None:
                raise


def check_path(path):
    """Raises parity_probe.Error when no file can be made at `path`: better now than after an hour of computing."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise Error(f"{path}: is a folder; give a file name")
    if not os.path.isdir(folder):
        raise Error(f"{path}: there is no folder {folder}; create it first")
    if not os.access(folder, os.W_OK):
        raise Error(f"{path}: folder {folder} is not writable")
