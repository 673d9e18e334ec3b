"""A quick look into a recording: where it comes from, how much it holds, the tree of module calls."""
import collections
import json

import h5py

from .errors import Error
from .printable import printable

_LISTED = 60


def read_events(file):
    """The events of an open h5py.File; of an interrupted file those up to the last whole line. Raises parity_probe.Error when they cannot be read."""
    try:
        data = file["trace/events"][()].tobytes()
        data = data[:data.rfind(b"\n") + 1].split(b"\0", 1)[0]
        return [json.loads(line) for line in data.split(b"\n") if line]
    except (KeyError, OSError, ValueError) as e:
        raise Error(f"{file.filename}: dataset /trace/events cannot be read: {e}") from e


def _size(n):
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} TB"


def _head(f):
    about = json.loads(f.attrs["provenance"])
    state = "complete" if f.attrs["complete"] else "INTERRUPTED"
    yield f"{f.filename}: {f.attrs['format']}, {state}, level {f.attrs['level']}, {f.attrs['model'] or 'no model'}, by {f.attrs['producer']}"
    parts = [about.get("time"), about.get("torch") and f"torch {about['torch']}", about.get("cpu"), about.get("device"), about.get("dtype"),
             about.get("threads") and f"{about['threads']} threads", about.get("seed") is not None and f"seed {about['seed']}"]
    yield "  " + ", ".join(str(p) for p in parts if p)
    values = list(f["values"].values())
    counts = {name: len(f[name]) for name in ("weights", "inputs", "outputs")}
    yield (f"  {len(values)} tensors, {_size(sum(v.id.get_storage_size() for v in values))}; {counts['weights']} weights, {counts['inputs']} calls with inputs, "
           f"{counts['outputs']} with outputs")


def _tensor(v):
    return f"{v.get('n') or v.get('path')} {v['d']}{v['s']}"


def _statistics(found):
    """", mean 0.01 ± 1.02, |x| 0.8, -4.1 … 3.9, 3 zero, 1 NaN" of what FORMAT.md calls `stats`."""
    if not found:
        return ""
    def number(name):
        return "?" if found[name] is None else f"{found[name]:.6g}"
    counts = "".join(f", {found[name]} {word}" for name, word in (("zero", "zero"), ("nan", "NaN"), ("inf", "infinite")) if found[name])
    return f", mean {number('mean')} ± {number('std')}, |x| {number('mean_abs')}, {number('min')} … {number('max')}{counts}" if found["count"] else ", empty"


def _calls(events):
    results = {e["id"]: e for e in events if e["e"] == "ret"}
    depth = {-1: -1}
    for e in events:
        if e["e"] == "call":
            depth[e["id"]] = depth.get(e["parent"], -1) + 1
            ret = results.get(e["id"], {"error": "never returned"})
            out = f"!! {ret['error']}" if "error" in ret else ", ".join(map(_tensor, ret["outputs"]))
            yield f"{'  ' * depth[e['id']]}{e['path'] or '(model)'} #{e['call']} {e['class']}: {', '.join(map(_tensor, e['inputs']))} -> {out}"
        elif e["e"] == "point":
            yield f"{e['role']} {e['path']} #{e['call']}: {e['d']}{e['s']}{_statistics(e.get('stats'))}"


def show(path, everything=False):
    """Prints the summary of the file at `path`; returns exit status 0. Raises parity_probe.Error when it is not a parity-dump."""
    try:
        f = h5py.File(path, "r", locking=False)
    except (OSError, ValueError) as e:
        raise Error(f"{path}: not an HDF5 file that can be opened: {e}") from e
    with f:
        if not str(f.attrs.get("format", "")).startswith("parity-dump/"):
            raise Error(f"{path}: not a parity-dump (no attribute 'format')")
        try:
            events = read_events(f)
            ops = collections.Counter(e["op"] for e in events if e["e"] == "op")
            opaque = collections.Counter(e["opaque"] for e in events if e.get("opaque"))
            lines = list(_head(f)) + [f"  {sum(ops.values())} ops: " + ", ".join(f"{n} {name}" for name, n in ops.most_common(8))]
            lines += ["  opaque: " + ", ".join(f"{n} {why}" for why, n in opaque.items())] if opaque else []
            calls = list(_calls(events))
        except (KeyError, ValueError, OSError, TypeError) as e:
            raise Error(f"{path}: damaged: {e}") from e
    listed = calls if everything else calls[:_LISTED]
    for line in lines + listed + ([f"... {len(calls) - len(listed)} more (--all)"] if len(listed) < len(calls) else []):
        print(printable(line))
    return 0
