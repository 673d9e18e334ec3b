"""An ONNX model as the reference of a comparison: against ONNX Runtime, plain and fused, against PyTorch, against plain arrays, and what is said of bad input."""
import json
import pathlib
import subprocess

import numpy as np
import pytest
import program

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

import engine_exports  # noqa: E402
import h5py  # noqa: E402
import onnx_exports  # noqa: E402
from engine_exports import exported, ran  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from parity_probe.engines import onnxruntime as recorder  # noqa: E402
from parity_probe.engines.module_paths import inside  # noqa: E402


def compare(reference, candidate, *more):
    """(exit status, report or None, what is said on stderr)."""
    out = pathlib.Path(candidate).with_suffix(".json")
    run = program.run("compare", reference, candidate, "--json", out, *more)
    return run.returncode, json.loads(out.read_text()) if out.exists() and run.returncode != 2 else None, run.stderr


@pytest.mark.parametrize("name", engine_exports.EXPORTS)
def test_onnx_runtime_agrees_with_the_model_and_a_fault_is_found(name):
    _, file = exported(name)
    export = engine_exports.EXPORTS[name]
    for optimisation in ("none", "all"):
        status, report, said = compare(file, ran(name, optimisation, wrong=False))
        assert status == 0 and report["verdict"] == "pass" and report["counts"]["pass"] >= 20, (optimisation, said, report and report["findings"])
        errors = [row["forced"]["rel_l2"] for row in report["ops"] if row["forced"] and row["forced"]["rel_l2"] is not None]
        assert max(errors) <= 2e-6 and max(row["free"]["rel_l2"] or 0 for row in report["ops"] if row["free"]) <= 1e-4, optimisation  # roundings of float32
        status, report, said = compare(file, ran(name, optimisation, wrong=True))
        assert status == 1, (optimisation, said)
        assert inside(report["first_divergence"]["path"].split("/")[0], export.module), (optimisation, report["first_divergence"])


COARSE = {"an LSTM": 4e-7}  # ONNX Runtime's Elu takes exp(x) - 1, which cancels near 0: 2.4e-7 of the norm, measured


@pytest.mark.parametrize("name, exporter", [(name, exporter) for name in onnx_exports.MODELS for exporter, other in (("dynamo", "LEGACY"), ("legacy", "DYNAMO"))
                                            if name not in getattr(onnx_exports, f"{other}_ALONE")])  # what only the other exporter takes
def test_both_exporters(name, exporter, tmp_path):
    """Encoder and decoder, relative positions, Resize, poolings, weight norm, images, diffusion; the legacy exporter's chains of shapes."""
    inputs = onnx_exports.export(name, exporter, tmp_path / "m.onnx")
    recorder.record(tmp_path / "m.onnx", inputs, tmp_path / "c.h5", threads=1)
    status, report, said = compare(tmp_path / "m.onnx", tmp_path / "c.h5")
    unknown = [w for w in report["warnings"] if "is not known here" in w] if report else []
    assert status in (0, 1) and report["counts"]["pass"] >= 10 and bool(unknown) == (name == "an LSTM"), (said, unknown)
    bad = [row["path"] for row in report["ops"] if row["verdict"] != "pass" and not (name in COARSE and row["forced"] and row["forced"]["rel_l2"] <= COARSE[name])]
    assert not bad, (bad, report["findings"])


def test_the_report_names_the_model(tmp_path):
    _, file = exported("olmo2")
    candidate = ran("olmo2", "none", wrong=False)
    before = set(pathlib.Path("/tmp").glob("parity-onnx-*"))
    _, report, _ = compare(file, candidate)
    digest = subprocess.run(["sha256sum", file], capture_output=True, text=True).stdout.split()[0]
    assert report["reference"]["path"] == str(file) and report["reference"]["sha256"] == digest
    assert "pytorch" in report["reference"]["producer"] and report["reference"]["details"]["onnx"]["opset"] >= 17
    exported_again = program.run("export", candidate.with_suffix(".json"), "--to", "model-explorer", "--out", tmp_path / "graph")
    assert exported_again.returncode == 0 and "is an ONNX model" in exported_again.stdout, exported_again.stderr
    assert set(pathlib.Path("/tmp").glob("parity-onnx-*")) == before
    paths = {row["path"]: row["kind"] for row in report["ops"]}
    assert "model.layers.0.self_attn/Softmax.0" in paths and "model.layers.1.mlp.act_fn" in paths


@pytest.mark.parametrize("name", ["olmo2", "resnet", "gpt_neox"])
def test_a_pytorch_recording_as_the_port(name):
    recording, file = exported(name)
    status, report, said = compare(file, recording)
    assert status == 0 and report["counts"]["pass"] >= 20, (said, report and report["findings"])


def test_plain_arrays_as_the_port(tmp_path):
    _, file = exported("opt")
    result = recorder.record(file, engine_exports.EXPORTS["opt"].inputs, tmp_path / "c.h5", threads=1)[0]
    np.savez(tmp_path / "inputs.npz", **engine_exports.EXPORTS["opt"].inputs)
    np.savez(tmp_path / "out.npz", **result)
    status, _, said = compare(file, tmp_path / "out.npz")
    assert status == 2 and "its input 'input_ids' (int64) is given neither by the candidate nor by --inputs FILE" in said and said.count("\n") == 1
    status, report, said = compare(file, tmp_path / "out.npz", "--inputs", tmp_path / "inputs.npz")
    assert status == 0 and report["counts"]["pass"] >= 1, (said, report)
    wrong = {name: value * np.float32(1.001) for name, value in result.items()}
    np.savez(tmp_path / "wrong.npz", **wrong)
    assert compare(file, tmp_path / "wrong.npz", "--inputs", tmp_path / "inputs.npz")[0] == 1
    np.savez(tmp_path / "both.npz", **engine_exports.EXPORTS["opt"].inputs, **result)
    assert compare(file, tmp_path / "both.npz")[0] == 0


def node(kind, inputs, outputs, name="", **attributes):
    return helper.make_node(kind, inputs, outputs, name, **attributes)


def made(path, nodes, outputs, initializers=(), opset=18, shape=("n", 4), kind=TensorProto.FLOAT):
    values = [helper.make_tensor_value_info(o, kind, None) for o in outputs]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], values, list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)], ir_version=10), path)
    return path


X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def recording(path, **arrays):
    from parity_probe import Writer
    with Writer(path) as writer:
        writer.write("x", X, role="input")
        for name, value in arrays.items():
            writer.write(name, value)
    return path


def test_an_unknown_operator_is_taken_from_the_candidate_or_refused(tmp_path):
    file = made(tmp_path / "m.onnx", [node("Relu", ["x"], ["a"], "first"), node("Twice", ["a"], ["b"], "second", domain="mine"), node("Neg", ["b"], ["y"], "third")], ["y"])
    status, _, said = compare(file, recording(tmp_path / "few.h5", y=-2 * np.maximum(X, 0)))
    assert status == 2 and "node 'second' (mine.Twice): the operator is not known here, and the candidate has no value 'second'" in said and said.count("\n") == 1
    status, report, said = compare(file, recording(tmp_path / "c.h5", first=np.maximum(X, 0), second=2 * np.maximum(X, 0), third=-2 * np.maximum(X, 0)))
    assert status == 0 and any("Twice" in w for w in report["warnings"]), (said, report)
    status, report, _ = compare(file, recording(tmp_path / "w.h5", first=np.maximum(X, 0), second=2 * np.maximum(X, 0), third=-2.1 * np.maximum(X, 0)))
    assert status == 1 and report["first_divergence"]["path"] == "third"


def test_branches_run_as_their_condition_says(tmp_path):
    def branch(kind):
        return helper.make_graph([node(kind, ["a"], ["r_" + kind])], kind, [], [helper.make_tensor_value_info("r_" + kind, TensorProto.FLOAT, None)])
    nodes = [node("Abs", ["x"], ["a"], "abs"), node("ReduceMax", ["x"], ["most"], keepdims=0), node("Greater", ["most", "two"], ["large"]),
             node("If", ["large"], ["y"], "which", then_branch=branch("Neg"), else_branch=branch("Sqrt"))]
    file = made(tmp_path / "m.onnx", nodes, ["y"], [numpy_helper.from_array(np.array(2, np.float32), "two")])
    recorder.record(file, [X], tmp_path / "c.h5", threads=1)
    status, report, said = compare(file, tmp_path / "c.h5")
    assert status == 0 and "which" in [row["path"] for row in report["ops"]], (said, report)


def test_several_runs_are_calls(tmp_path):
    file = made(tmp_path / "m.onnx", [node("Relu", ["x"], ["a"], "first"), node("Neg", ["a"], ["y"], "second")], ["y"])
    recorder.record(file, [{"x": X}, {"x": X[:2] + 1}], tmp_path / "c.h5", threads=1)
    status, report, said = compare(file, tmp_path / "c.h5")
    assert status == 0 and {(row["path"], row["call"]) for row in report["ops"]} >= {("first", 0), ("second", 0), ("first", 1), ("second", 1)}, said


def test_weights_in_a_file_beside_it(tmp_path):
    weight = np.random.RandomState(3).randn(4, 300).astype(np.float32)
    file = made(tmp_path / "m.onnx", [node("MatMul", ["x", "w"], ["y"], "product")], ["y"], [numpy_helper.from_array(weight, "w")])
    onnx.save(onnx.load(file), file, save_as_external_data=True, location="weights.bin", size_threshold=16)
    assert (tmp_path / "weights.bin").stat().st_size >= weight.nbytes and file.stat().st_size < 1000
    recorder.record(file, [X], tmp_path / "c.h5", threads=1)
    assert compare(file, tmp_path / "c.h5")[0] == 0
    (tmp_path / "weights.bin").write_bytes((tmp_path / "weights.bin").read_bytes()[:-8])
    status, _, said = compare(file, tmp_path / "c.h5")
    assert status == 2 and "weights.bin ends before" in said and said.count("\n") == 1
    model = onnx.load(file, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = "../weights.bin" if entry.key == "location" else entry.value
    onnx.save(model, file)
    status, _, said = compare(file, tmp_path / "c.h5")
    assert status == 2 and "which is no file in the model's folder" in said and said.count("\n") == 1


def test_bad_models_are_one_clear_line(tmp_path):
    candidate = recording(tmp_path / "c.h5", y=X)
    good = made(tmp_path / "good.onnx", [node("Relu", ["x"], ["y"], "r")], ["y"])
    (tmp_path / "no.onnx").write_bytes(b"not a model")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "cut.onnx").write_bytes(good.read_bytes()[:-7])
    made(tmp_path / "old.onnx", [node("Relu", ["x"], ["y"])], ["y"], opset=11)
    made(tmp_path / "order.onnx", [node("Relu", ["z"], ["y"]), node("Neg", ["x"], ["z"])], ["y"])
    made(tmp_path / "axis.onnx", [node("Softmax", ["x"], ["y"], "s", axis=5)], ["y"])
    made(tmp_path / "shape.onnx", [node("Relu", ["x"], ["y"])], ["y"], shape=("n", 5))
    made(tmp_path / "huge.onnx", [node("ConstantOfShape", ["s"], ["c"]), node("Add", ["x", "c"], ["y"])], ["y"], [numpy_helper.from_array(np.array([1 << 40, 1 << 20]), "s")])
    short = numpy_helper.from_array(np.ones(4, np.float32), "w")
    short.dims[0] = 5
    made(tmp_path / "short.onnx", [node("Add", ["x", "w"], ["y"])], ["y"], [short])
    far = numpy_helper.from_array(np.ones(4, np.float32), "w")
    far.dims[:] = [1 << 40, 1 << 40]
    made(tmp_path / "far.onnx", [node("Add", ["x", "w"], ["y"])], ["y"], [far])
    made(tmp_path / "beyond.onnx", [node("Gather", ["x", "i"], ["y"], "g", axis=1)], ["y"], [numpy_helper.from_array(np.array([9, 1]), "i")])
    for name, text in (("no", "is no ONNX model"), ("empty", "is empty"), ("cut", "truncated"), ("old", "operator set 11; 13 or later is needed"), ("order", "value 'z' is read, and nothing before gives it"),
                       ("axis", "node 's' (Softmax): axis 5 is none of 2 axes"), ("shape", "is of shape [-1, 5] (-1: any), [3, 4] is given"), ("huge", "ConstantOfShape"),
                       ("short", "tensor 'w': holds 16 bytes, its shape and dtype ask for 20"), ("far", "is larger than any memory"), ("beyond", "its indices lie beyond its input")):
        status, _, said = compare(tmp_path / f"{name}.onnx", candidate)
        assert status == 2 and text in said and said.count("\n") == 1 and f"{name}.onnx" in said, (name, status, said)
    status, _, said = compare(candidate, good)
    assert status == 2 and "is an ONNX model, which runs on the inputs of a candidate" in said
    status, _, said = compare(candidate, candidate, "--inputs", candidate)
    assert status == 2 and "--inputs is for a reference that is an ONNX model" in said


def test_cut_files_never_crash(tmp_path):
    whole = exported("resnet")[1].read_bytes()
    candidate = recording(tmp_path / "c.h5", y=X)
    for n in range(24):
        (tmp_path / "m.onnx").write_bytes(whole[:1 + len(whole) * n // 24])
        status, _, said = compare(tmp_path / "m.onnx", candidate)
        assert status == 2 and said.count("\n") == 1, (n, status, said)


def test_the_recorder_names_values_alike():
    """Every value that ONNX Runtime's recording holds and that is no dead integer or constant has its row."""
    _, file = exported("gptj")
    candidate = ran("gptj", "none", wrong=False)
    _, report, _ = compare(file, candidate)
    with h5py.File(candidate) as recorded:
        events = [json.loads(line) for line in bytes(recorded["trace/events"][()]).decode().splitlines()]
    floats = {e["path"] for e in events if e["e"] == "point" and e["role"] == "output" and e["d"] == "float32"}
    rows = {row["candidate_path"] for row in report["ops"] if row["path"] == row["candidate_path"]}
    assert len(floats - rows) <= 2, floats - rows
