"""Runs a model twice: as the user does, for the result, and with every value as an output, for the recording."""
import os

import numpy as np

from ...errors import Error
from ...version import __version__
from ...writer import Writer
from . import graph as graphs
from .names import paths
from .nchwc import in_model_layout

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
          "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def record(model, inputs, path, optimisation="none", providers=("CPUExecutionProvider",), weights=True, threads=0, config=None):
    """Runs the ONNX file `model` on `inputs` and writes every value to the HDF5 file `path`.

    inputs        {name: array}, or arrays in the model's order; a list of such mappings: one run after the other
    optimisation  none: the graph as it stands; basic, extended, all: the graph that ONNX Runtime makes of it at that level. What it fuses away has no value to
                  record; values that stay keep their paths.
    providers     ONNX Runtime's execution providers
    weights       also the initializers, under their names
    threads       of one op; 0: as ONNX Runtime chooses
    config        a mapping for the file's provenance

    Returns [{name: array}], the model's own outputs, run by run, of the model as the user runs it at that level. Should the run that is recorded give other
    bits, a note in the file says in how many elements. All values of a run are in memory at once. Raises parity_probe.Error: a package is missing, a file that is
    no model, an input that is missing or unknown, ONNX Runtime's own reasons, a file that cannot be written.
    """
    if optimisation not in graphs.LEVELS:
        raise ValueError(f"optimisation must be one of {', '.join(graphs.LEVELS)}, not {optimisation!r}")
    model = os.fspath(model)
    original = graphs.load(model)
    named = paths(original.graph)
    plain = graphs.session(model, optimisation, providers, threads)
    several = isinstance(inputs, list) and inputs and all(hasattr(run, "keys") for run in inputs)
    runs = [_feed(plain, run, model) for run in (inputs if several else [inputs])]
    if optimisation == "none":
        whole = original
        values = {v: v for node in whole.graph.node for v in node.output if v}
    else:
        whole = graphs.optimised(original, optimisation, providers)
        named = {**{v: [f"optimised/{p}" for p in names] for v, names in paths(whole.graph).items()}, **named}
        values = in_model_layout(original, whole)
    initializers = list(whole.graph.initializer) if weights else []
    outputs = graphs.with_all_outputs(whole)
    values = {name: outputs[value] for name, value in values.items()}
    recorded = graphs.session(whole, "none", providers, threads)
    engine = dict(name="onnxruntime", version=graphs.packages()[1].__version__, optimisation=optimisation, providers=list(providers))
    with Writer(path, config=config, model=os.path.basename(model), producer=f"parity_probe.engines.onnxruntime {__version__}",
                about=lambda: {"engine": engine}) as writer:
        for initializer in initializers:
            _write_weight(writer, initializer)
        return [_run(writer, plain, recorded, feed, named, values) for feed in runs]


def _feed(session, run, model):
    wanted = {i.name: i for i in session.get_inputs()}
    if not hasattr(run, "keys"):
        run = dict(zip(wanted, run))
    for name in [n for n in run if n not in wanted]:
        raise Error(f"{model}: has no input {name!r}; its inputs are {', '.join(wanted)}")
    for name in [n for n in wanted if n not in run]:
        raise Error(f"{model}: its input {name!r} ({wanted[name].type}) is not given")
    return {name: np.asarray(value, DTYPES.get(wanted[name].type)) for name, value in run.items()}


def _fetch(session, names, feed):
    try:
        return session.run(names, feed)
    except Exception as e:
        raise Error(f"ONNX Runtime stopped: {str(e).splitlines()[0]}") from None


def _run(writer, plain, recorded, feed, named, outputs):
    """One run: its inputs and its values ({name: output of the session `recorded`}) to the writer. Returns the model's outputs."""
    result = dict(zip((o.name for o in plain.get_outputs()), _fetch(plain, None, feed)))
    values = dict(zip(outputs, _fetch(recorded, list(outputs.values()), feed)))
    for name, value in feed.items():
        writer.write(name, value, role="input", source="")
    for name in outputs:
        if not isinstance(values[name], np.ndarray) or values[name].dtype.kind in "OSU":
            writer.note(skipped=name, type=type(values[name]).__name__)
            continue
        for path in named.get(name) or [name]:
            writer.write(path, values[name], source="")
    for name, value in result.items():
        if name in values and isinstance(value, np.ndarray):
            other = int(np.sum(~((value == values[name]) | ((value != value) & (values[name] != values[name])))))
            if other:
                writer.note(differs=name, elements=other, of=int(value.size))
    return result


def _write_weight(writer, initializer):
    onnx, _ = graphs.packages()
    values = onnx.numpy_helper.to_array(initializer)
    if values.dtype.kind not in "OSUV":
        writer.write(initializer.name, values, role="weight", source="")
