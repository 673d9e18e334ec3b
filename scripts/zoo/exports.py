"""Exports as ports: the model by torch.onnx.export, run in ONNX Runtime, plain and optimised, against its PyTorch recording. Needs the engines' environment
(tests/python/requirements-engines.txt): .venv-engines/bin/python -m zoo exports."""
import dataclasses
import tempfile

import torch

from . import produce
from .cases import faults_of
from .intervals import share
from .operators.operator import sites
from .produce import Refused
from .truth import names_it, slight, truth_of
from .unit import Unit

OPTIMISATIONS = ("none", "all")
RESERVED = ("bert", "vit", "llama")   # acceptance is measured on their exports


def arguments(entry):
    """The tensors that the model is called with. Raises Refused for what an exported graph cannot be given."""
    calls = entry.calls("fp32")
    if len(calls) > 1 or entry.cached:
        raise Refused("is called several times")
    if not all(torch.is_tensor(v) or isinstance(v, (bool, int, float, str, type(None))) for v in calls[0].values()):
        raise Refused("takes lists of tensors")
    return calls[0]


def exported(entry, file, fault=None):
    """Writes the model, with the fault in it, to `file`; returns the feed of its session. Raises Refused where the exporter or ONNX Runtime does."""
    call = arguments(entry)
    feed = {k: v.numpy() for k, v in call.items() if torch.is_tensor(v)}

    def export(model):
        if hasattr(model, "config") and hasattr(model.config, "use_cache"):
            model.config.use_cache = False
        torch.onnx.export(model.eval(), (), str(file), kwargs=call, dynamo=True, input_names=list(feed), verbose=False)
    try:
        produce.run(entry, "fp32", export, fault)
        import onnxruntime
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        return {i.name: feed[i.name] for i in session.get_inputs()}
    except Exception as e:
        raise Refused(f"is not exported: {type(e).__name__}") from e


def recorded(unit, name, fault=None):
    """(optimisation, recording) of an export's runs."""
    from parity_probe.engines import onnxruntime as recorder
    file = unit.folder / f"{name}.onnx"
    feed = exported(unit.entry, file, fault)
    for optimisation in OPTIMISATIONS:
        recording = unit.folder / f"{name}.{optimisation}.h5"
        recorder.record(file, feed, recording, optimisation=optimisation, threads=1)
        yield optimisation, recording


def faulty(unit, faults):
    """Names and truths of so many faults that show, with their recordings."""
    accepted = 0
    for fault in faults_of(unit.entry, unit.dtype, unit.model):
        if accepted >= faults:
            return
        put = (fault.operator, fault.path)
        try:
            truth = truth_of(produce.boundaries(unit.entry, unit.dtype, put, None, unit.plain), unit.plain, sites(fault.path))
            if truth is None or slight(truth):
                continue
            runs = list(recorded(unit, f"fault{accepted}", put))
        except Exception:
            continue
        accepted += 1
        for optimisation, recording in runs:
            yield f"{fault.name}, optimised: {optimisation}", truth, recording


def rows_of(unit, faults):
    try:
        healthy = list(recorded(unit, "plain"))
    except Refused as e:
        yield unit.row("refused", str(e))
        return
    for optimisation, recording in healthy:
        yield unit.judged(recording, unit.row("export", f"optimised: {optimisation}"))
    for name, truth, recording in faulty(unit, faults):
        row = unit.judged(recording, {**unit.row("fault", name), "truth": dataclasses.asdict(truth)})
        row["placed"] = row["verdict"] == "fail" and row["path"] is not None and names_it(row["path"], row["call"], truth)
        yield row


def run(units, binary, faults, limit, each):
    """Rows of each model's healthy exports and of `faults` faults, put in before the export. fp32 alone: ONNX Runtime has few kernels for bf16."""
    rows = []
    for entry, dtype in units:
        if dtype != "fp32" or entry.name in RESERVED:
            continue
        # Eager: a graph gives other numbers than the fused kernel to rows that see no key, and these are nobody's.
        eager = dataclasses.replace(entry, attention="eager")
        with tempfile.TemporaryDirectory(prefix=f"zoo-{entry.name}-") as folder:
            for row in rows_of(Unit(eager, dtype, folder, binary, limit), faults):
                rows.append(row)
                each(row)
    return rows


def right(row):
    return row["verdict"] == "pass" if row["kind"] == "export" else row["placed"]


def text(rows):
    asked = [r for r in rows if r["kind"] != "refused"]
    healthy, wrong = [r for r in asked if r["kind"] == "export"], [r for r in asked if r["kind"] == "fault"]
    bad = [f"{r['family']} {r['name']}: {r['verdict']} at {r['path']}" for r in asked if not right(r)]
    return "\n".join([*bad, f"healthy exports that pass {share(sum(r['verdict'] == 'pass' for r in healthy), len(healthy))}, false alarms "
                            f"{sum(r['verdict'] == 'fail' for r in healthy)}; faults found {share(sum(r['verdict'] == 'fail' for r in wrong), len(wrong))}, at their module "
                            f"{share(sum(r['placed'] for r in wrong), len(wrong))}; {len(rows) - len(asked)} models are not exported"])
