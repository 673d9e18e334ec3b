"""Recordings of small models as a port hands them over that shares no name with its reference: every tensor called after its number, or as an engine calls it."""
import json
import pathlib

import h5py
import numpy as np
import torch

import parity_probe
import program


def record(model, file, inputs):
    with torch.no_grad(), parity_probe.record(model, file):
        model(**inputs)
    return file


def boundaries(file):
    """Of a recording: (path, value id, array) of every stored result, modules' and ops', in execution order; each value once, under its first module's name."""
    found, calls = {}, {}
    with h5py.File(file) as dump:
        for line in bytes(dump["/trace/events"][()]).decode().splitlines():
            event = json.loads(line)
            if event["e"] == "call":
                calls[event["id"]] = event
            path, outputs = None, []
            if event["e"] == "op" and not event.get("view") and not event.get("opaque"):
                path, outputs = f"op {event['op'].split('::')[1].split('.')[0]}", [o for o in event["out"] if o][:1]
            elif event["e"] == "ret" and calls[event["id"]]["path"]:
                path, outputs = calls[event["id"]]["path"], event["outputs"][:1]
            for value in outputs:
                if value.get("k") is None or value["d"] != "float32":
                    continue
                if value["v"] not in found or found[value["v"]][0].startswith("op "):
                    found[value["v"]] = (path, value["v"], dump[f"/values/{value['k']}"][()])
    return list(found.values())


def numbered():
    """For `rewrite`: each path under a number that all its calls have."""
    numbers = {}
    return lambda _, path: f"x{numbers.setdefault(path, len(numbers))}"


def rewrite(recording, file, name=lambda number, path: f"t{number}", keep=lambda path: True, layout=lambda path, array: array):
    """The recording's results alone, under other names. Returns {name: path of the value}, the truth."""
    truth = {}
    with parity_probe.Writer(file) as writer:
        for path, _, array in boundaries(recording):
            if keep(path):
                called = name(len(truth), path)
                truth[called] = path
                writer.write(called, np.ascontiguousarray(layout(path, array)))
    return truth


def compare(reference, candidate, folder, *options):
    """The report, its paired rows by the candidate's name, and the seconds it took."""
    done = program.run("compare", reference, candidate, "--out", folder, "--quiet", *options)
    assert done.returncode in (0, 1, 3), done.stderr
    report = json.loads((pathlib.Path(folder) / "report.json").read_text())
    rows = {op["candidate_path"]: op for op in report["ops"] if op.get("candidate_path")}
    return report, rows
