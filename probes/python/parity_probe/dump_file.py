"""The one place that writes HDF5: values, links and the event stream of FORMAT.md, in an order that survives `kill -9`.

Between two flushes nothing of the file's structure may reach the disk piecemeal, or a killed process leaves groups that point nowhere. HDF5 writes structure
early only when its metadata cache is full; the cache is therefore larger than what can gather between flushes. A flush first brings out the values,
then the events that refer to them; see disk.py for how it does.
"""
import atexit
import errno
import json
import os
import time
import weakref

import h5py
import numpy as np
from h5py import h5d, h5f, h5fd, h5p, h5s, h5t

from . import element_types
from .disk import Disk
from .errors import Error
from .version import FORMAT

FLUSH_SECONDS, FLUSH_BYTES, FLUSH_DATASETS, FLUSH_EVENTS = 1.0, 256 << 20, 4096, 1 << 20
CACHE_BYTES = 32 << 20   # HDF5's maximum; 4096 datasets with their links need about a tenth
EVENT_CHUNK = 64 << 10
RESERVE = 4 << 20        # left free on the disk, so that the file can still be closed properly
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _access(disk):
    """File access properties: readable by HDF5 1.10 and later. No lock is taken: a reader may look at a growing file."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V110)
    fapl.set_fileobj_driver(h5fd.fileobj_driver, disk)
    cache = fapl.get_mdc_config()
    cache.set_initial_size, cache.initial_size, cache.max_size, cache.min_size = True, CACHE_BYTES, CACHE_BYTES, CACHE_BYTES
    cache.incr_mode = cache.flash_incr_mode = cache.decr_mode = 0
    fapl.set_mdc_config(cache)
    return fapl


def _layout():
    """File creation properties: space that became free is not used again, as what the last flush left may still refer to it."""
    fcpl = h5p.create(h5p.FILE_CREATE)
    fcpl.set_file_space_strategy(h5f.FSPACE_STRATEGY_NONE, False, 1)
    return fcpl


def _fixed_string(text):
    t = h5t.C_S1.copy()
    t.set_size(max(1, len(text)))
    t.set_strpad(h5t.STR_NULLPAD)
    return t, np.array(text.encode(), dtype=f"S{max(1, len(text))}")


def _reason(error):
    """What went wrong, and what to do where that is known."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None)):
        return f"{error.strerror}; free some space or record to another disk: what is in the file stays readable"
    return str(error)


def link_name(name):
    """`name` as one step of an HDF5 path: without "/", and not "." or empty, which mean the group itself."""
    name = name.replace("/", "%2F")
    return name if name.strip(".") else name.replace(".", "%2E") or "%"


_files = weakref.WeakSet()  # open ones


@atexit.register
def _let_go():
    """A program that ends without closing its recordings: HDF5 would call on objects that Python has already taken apart (a crash was seen)."""
    for file in list(_files):
        file.abandon()


class DumpFile:
    """One parity-dump/1 file being written. It appears under its final name at once, complete in structure; an older file there is replaced in that moment."""

    def __init__(self, path, level, producer, model="", provenance=None):
        """Raises parity_probe.Error when `path` cannot be created."""
        self.path, self.closed, self._file = os.fspath(path), False, None
        self._events, self._event_bytes, self._event_end = [], 0, 0
        self._since = [0, 0]  # value bytes, datasets since the last flush
        self._names, self._types = {}, {}
        temporary = os.path.join(os.path.dirname(self.path), f".{os.path.basename(self.path)}.{os.getpid()}.tmp")
        try:
            self._disk = Disk(temporary)
            try:
                self._file = h5py.File(h5f.create(os.fsencode(temporary), h5f.ACC_TRUNC, _layout(), _access(self._disk)))
                self._lay_out(level, producer, model, provenance or {})
                self.flush()
                os.replace(temporary, self.path)  # whoever has the older file open keeps it whole
            except BaseException:
                self.abandon()
                os.unlink(temporary)
                raise
        except (OSError, RuntimeError, ValueError) as e:
            raise Error(f"{self.path}: cannot create the file: {_reason(e)}") from e
        _files.add(self)

    def _lay_out(self, level, producer, model, provenance):
        f = self._file
        f.attrs["format"], f.attrs["complete"], f.attrs["level"] = FORMAT, np.uint8(0), level
        f.attrs["producer"], f.attrs["model"] = producer, model
        f.attrs["provenance"] = json.dumps(provenance, allow_nan=False)
        self._create = h5p.create(h5p.DATASET_CREATE)
        self._create.set_fill_time(h5d.FILL_TIME_NEVER)
        self._create.set_obj_track_times(False)
        self._values = f.create_group("values").id
        for name in ("weights", "inputs", "outputs"):
            f.create_group(name)
        self._stream = f.create_dataset("trace/events", shape=(0,), maxshape=(None,), dtype="u1", chunks=(EVENT_CHUNK,))

    def value(self, key, dtype, bits, strides=None, misalignment=0, loose_strides=None):
        """Writes /values/<key>: `bits` is a C-contiguous numpy array of `element_types.carrier(dtype)`. Raises parity_probe.Error when it cannot."""
        try:
            self._room(bits.nbytes)
            file_type = element_types.file_type(dtype)
            dataset = h5d.create(self._values, key.encode(), file_type, h5s.create_simple(bits.shape) if bits.ndim else h5s.create(h5s.SCALAR), self._create)
            if bits.size:
                dataset.write(h5s.ALL, h5s.ALL, bits, mtype=file_type)
                self._check()
            self._name_type(dataset, dtype)
            if strides is not None:
                self._integers(dataset, b"strides", strides)
            if loose_strides is not None:
                self._integers(dataset, b"loose_strides", loose_strides)
            if misalignment:
                self._integers(dataset, b"misalignment", [misalignment])
        except (OSError, RuntimeError, ValueError, TypeError) as e:
            raise Error(f"{self.path}: cannot write dataset /values/{key} ({dtype}, shape {list(bits.shape)}): {_reason(e)}") from e
        self._since[0] += bits.nbytes
        self._since[1] += 1

    @staticmethod
    def _integers(dataset, name, values):
        h5py.h5a.create(dataset, name, h5t.NATIVE_INT64, h5s.create_simple((len(values),))).write(np.array(values, dtype=np.int64))

    def _name_type(self, dataset, dtype):
        if dtype not in self._types:
            self._types[dtype] = _fixed_string(dtype)
        string, value = self._types[dtype]
        h5py.h5a.create(dataset, b"dtype", string, h5s.create(h5s.SCALAR)).write(value, mtype=string)

    def _check(self):
        if self._disk.error is not None:
            raise self._disk.error

    def _room(self, nbytes):
        """A full disk is best found while there is still room to close the file properly."""
        if hasattr(os, "statvfs"):
            disk = os.statvfs(self.path)
            if disk.f_bavail * disk.f_frsize < nbytes + self._event_bytes + RESERVE:
                raise OSError(errno.ENOSPC, f"no space left on device: {nbytes} bytes wanted, {disk.f_bavail * disk.f_frsize} free, "
                                            f"{RESERVE} of them kept to close the file")

    def link(self, group, name, key):
        """Hard link /<group>/<name> to /values/<key>; a name that is taken stays as it is."""
        name = link_name(name)
        taken = self._names.setdefault(group, set())
        if name in taken:
            return
        taken.add(name)
        try:
            where = self._file.require_group(group)
            where.id.links.create_hard(name.encode(), self._values, key.encode())
        except (OSError, RuntimeError, ValueError, KeyError) as e:
            raise Error(f"{self.path}: cannot link /{group}/{name} to /values/{key}: {_reason(e)}") from e

    def event(self, **event):
        """Appends one line to the program; flushes when a second or enough bytes have gathered."""
        line = (_encode(event) + "\n").encode()
        self._events.append(line)
        self._event_bytes += len(line)
        if (self._since[0] > FLUSH_BYTES or self._since[1] > FLUSH_DATASETS or self._event_bytes > FLUSH_EVENTS
                or time.monotonic() - self._flushed > FLUSH_SECONDS):
            self.flush()

    def flush(self):
        """Everything so far reaches the file: values first, then the events that name them. Raises parity_probe.Error when it cannot."""
        try:
            self._settle(self._file.flush)
            if self._events:
                lines = np.frombuffer(b"".join(self._events), dtype=np.uint8)
                self._settle(self._append, lines)
        except (OSError, RuntimeError, ValueError) as e:
            raise Error(f"{self.path}: cannot write dataset /trace/events: {_reason(e)}") from e
        self._events, self._event_bytes, self._since = [], 0, [0, 0]
        self._flushed = time.monotonic()

    def _append(self, lines):
        self._stream.resize((self._event_end + lines.size,))
        self._stream[self._event_end:] = lines
        self._event_end += lines.size
        self._file.flush()

    def _settle(self, step, *args):
        self._disk.collect()
        try:
            step(*args)
        finally:
            self._disk.settle()
        self._check()

    def close(self, complete=True):
        """Flushes and closes; `complete` says whether the recording ran to its end. A second call does nothing."""
        if self.closed:
            return
        self.flush()
        self.closed = True
        try:
            if complete:
                self._settle(self._file.attrs.modify, "complete", np.uint8(1))
            self._settle(self._file.close)
            self._disk.close()
        except (OSError, RuntimeError, ValueError) as e:
            raise Error(f"{self.path}: cannot close the file: {_reason(e)}") from e

    def __del__(self):
        if not self.closed and hasattr(self, "_disk"):
            self.abandon()

    def abandon(self):
        """Without an end, or after a failure: lets go of the file, which stays as its last good flush left it. Never raises."""
        if not self.closed and self._file is not None and self._disk.error is None:
            try:
                self.flush()
            except Error:
                pass
        self.closed, self._events = True, []
        _files.discard(self)
        self._disk.error = self._disk.error or OSError("abandoned")
        try:
            if self._file is not None:
                self._file.close()
        except Exception:
            pass
        self._disk.close()
