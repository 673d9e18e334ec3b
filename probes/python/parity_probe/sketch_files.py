"""Recordings of level sketch from other recordings: of a full one, and of several that hold parts of the same tensors (the ranks of a parallel run)."""
import json
import os

import h5py
import numpy as np

from . import element_types, sketch
from .dump_file import DumpFile
from .errors import Error
from .show import read_events
from .version import __version__


class _Recording:
    """One recording, its points read as they are asked for."""

    def __init__(self, path):
        try:
            self.file = h5py.File(path, "r", locking=False)
        except (OSError, ValueError) as e:
            raise Error(f"{path}: not an HDF5 file that can be opened: {e}") from e
        self.path, attributes = os.fspath(path), self.file.attrs
        if not str(attributes.get("format", "")).startswith("parity-dump/"):
            raise Error(f"{path}: not a parity-dump (no attribute 'format')")
        if attributes["level"] == "stats":
            raise Error(f"{path}: holds statistics, which cannot be sketched")
        self.model, self.provenance, self.complete = str(attributes["model"]), json.loads(attributes["provenance"]), bool(attributes["complete"])

    def points(self):
        """(path, call, role, further keys, the encoded value) of everything named, in order: weights, inputs, module results, points."""
        events = read_events(self.file)
        if not any(e["e"] == "call" for e in events):
            for e in events:
                if e["e"] == "point":
                    yield e["path"], e["call"], e["role"], {key: e[key] for key in ("class", "src") if key in e}, e
            return
        running, lines, made = {}, {e["source_line"]: e["text"] for e in events if "source_line" in e}, {}
        for e in events:
            if e["e"] == "op" and e.get("src") in lines:
                made.update((v["v"], lines[e["src"]]) for v in [*e["out"], *e.get("writes", ())] if v)
            for name in e.get("names", ()) if e["e"] == "leaf" else ():
                if name.startswith("weights/"):
                    yield self._unescaped(name[8:]), 0, "weight", {}, e
            if e["e"] == "call":
                running[e["id"]] = e
                if e["path"] == "":
                    for v in e["inputs"]:
                        yield v["n"], e["call"], "input", {}, v
            elif e["e"] == "ret":
                call = running.pop(e["id"])
                for i, v in enumerate(e["outputs"]):
                    yield f"{call['path']}[{i}]" if i else call["path"], call["call"], "output", {"class": call["class"], **self._source(made, v)}, v
            elif e["e"] == "point":
                yield e["path"], e["call"], e["role"], self._source(made, e), e

    @staticmethod
    def _source(made, value):
        """The line of the last op that computed a value, as a point has it."""
        return {"src": made[value["v"]]} if value["v"] in made else {}

    @staticmethod
    def _unescaped(name):
        return name.replace("%2F", "/")

    def bits(self, value):
        return element_types.read_bits(self.file["values"][value["k"]])

    def sketch(self, value, buckets=None):
        """Its sketch; None when nothing is stored of it."""
        try:
            if "sketch" in value:
                return sketch.Sketch.from_json(value["sketch"], self.file["values"][value["sketch"]["k"]][()], value["s"])
            return sketch.sketch_bits(*self.bits(value), buckets=buckets) if value.get("k") is not None else None
        except (KeyError, ValueError) as e:
            raise Error(f"{self.path}: {value.get('path', value.get('n', 'a value'))}: damaged sketch: {e}") from e


def convert(source, target, buckets=None):
    """Writes the sketch recording `target` of the full recording `source`: module results, named points, inputs, weights.

    `buckets`: a power of two up to 4096 for every tensor, also the small ones that would be stored whole; default: as recorders do.
    Raises parity_probe.Error for files that cannot be read or written.
    """
    recording = _Recording(source)
    out = DumpFile(os.fspath(target), "sketch", f"parity_probe.sketch {__version__}", recording.model, recording.provenance)
    for number, (path, call, role, more, value) in enumerate(recording.points()):
        about = {"d": value["d"], "s": value["s"]}
        if "sketch" in value:
            out.value(str(number), "float64", recording.file["values"][value["sketch"]["k"]][()])
            about["sketch"] = {**value["sketch"], "k": str(number)}
        elif value.get("k") is not None:
            dtype, raw = recording.bits(value)
            about = sketch.record(out, str(number), dtype, raw, role, buckets=buckets)
        out.event(e="point", path=path, call=call, role=role, v=number, **about, **more)
    out.close(recording.complete)


def _sum(parts, name, files):
    """The sketch of the whole from (sketch, shape) of its parts. A tensor that every rank has whole is taken once."""
    whole = [p for p in parts if p.place is None]
    if whole:
        return whole[0]
    for i, a in enumerate(parts):
        for b in parts[:i]:
            if a.place.overlaps(b.place):
                raise Error(f"{', '.join(files)}: {name}: two parts overlap (from {list(a.place.start)} and {list(b.place.start)}); were offsets given?")
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.place = None
    return total


def _total(key, entries, files):
    """(dtype and shape, sketch or None, further keys) of one tensor from all files that hold a part of it."""
    path, call, role = key
    name, first = f"{role} {path or '(the result)'} call {call}", entries[0][1]
    if any((v["d"], v["s"]) != (first["d"], first["s"]) for _, v, _ in entries):
        raise Error(f"{', '.join(files)}: {name}: the files disagree about dtype or shape of the whole")
    parts = [s for s in (r.sketch(v) for r, v, _ in entries) if s is not None]
    total = _sum(parts, name, files) if parts else None
    expected = int(np.prod(first["s"], dtype=object)) * (2 if first["d"].startswith("complex") else 1)
    if total is not None and total.count != expected:
        raise Error(f"{', '.join(files)}: {name}: the parts hold {total.count} of {expected} numbers; name every rank's file")
    return {"d": first["d"], "s": first["s"]}, total, entries[0][2]


def merge(sources, target):
    """Adds up the recordings of the ranks of a parallel run (level sketch, written with `shard=`) to the recording of the whole.

    Parts of one (path, call, role) must not overlap and must fill the whole; what is whole already is taken from the first that has it.
    Raises parity_probe.Error naming the tensor otherwise.
    """
    recordings = [_Recording(s) for s in sources]
    files = [r.path for r in recordings]
    found = {}
    for recording in recordings:
        for path, call, role, more, value in recording.points():
            found.setdefault((path, call, role), []).append((recording, value, more))
    events = [_total(name, entries, files) for name, entries in found.items()]
    out = DumpFile(os.fspath(target), "sketch", f"parity_probe.sketch {__version__}", recordings[0].model, recordings[0].provenance)
    for number, ((path, call, role), (about, total, more)) in enumerate(zip(found, events)):
        if total is not None:
            out.value(str(number), "float64", total.buckets)
            about["sketch"] = total.json(str(number))
        out.event(e="point", path=path, call=call, role=role, v=number, **about, **more)
    out.close(all(r.complete for r in recordings))
