"""ONNX Runtime from its wheel as a port of the PyTorch models that it was exported from: values under the modules' paths, as the graph stands and optimised."""
import json
import pathlib
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
import program

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

import engine_exports  # noqa: E402
import engine_models as models  # noqa: E402
import parity_probe  # noqa: E402
import torch  # noqa: E402
from parity_probe.engines import onnxruntime as recorder  # noqa: E402
from parity_probe.engines.module_paths import inside  # noqa: E402
from parity_probe.engines.onnxruntime import graph as graphs  # noqa: E402
from parity_probe.engines.onnxruntime import names  # noqa: E402

IDS = np.array([models.TOKENS])
NAMES = ["llama", "qwen3", "gpt2"]


def points(path):
    """{(path, call, role): array} of a recording, and its notes."""
    with h5py.File(path) as f:
        events = [json.loads(line) for line in bytes(f["trace/events"][()]).decode().splitlines()]
        return {(e["path"], e["call"], e["role"]): f["values"][e["k"]][()] for e in events if e["e"] == "point"}, [e for e in events if e["e"] == "note"]


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """name -> (model, reference recording, its logits, ONNX file); each made once."""
    made, folder = {}, tmp_path_factory.mktemp("onnxruntime")

    def get(name):
        if name not in made:
            model = models.model(name)
            model.config.use_cache = False
            logits = models.reference(model, folder / f"{name}.ref.h5")
            torch.onnx.export(model, (torch.tensor(IDS),), folder / f"{name}.onnx", dynamo=True, input_names=["input_ids"], verbose=False)
            made[name] = model, folder / f"{name}.ref.h5", logits, folder / f"{name}.onnx"
        return made[name]

    return get


def compare(reference, candidate, out):
    """(exit status, report)."""
    run = program.run("compare", reference, candidate, "--out", out)
    return run.returncode, json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("optimisation", ["none", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_export_passes(case, tmp_path, name, optimisation):
    _, reference, logits, path = case(name)
    outputs = recorder.record(path, {"input_ids": IDS}, tmp_path / "c.h5", optimisation=optimisation, threads=1)[0]
    assert np.abs(next(iter(outputs.values()))[0] - logits).max() <= 5e-6 * np.abs(logits).max()
    status, report = compare(reference, tmp_path / "c.h5", tmp_path / "out")
    assert status == 0 and report["verdict"] == "pass", report["findings"]
    assert report["counts"]["pass"] >= (50 if optimisation == "all" else 75)
    assert not any("differs" in note for note in points(tmp_path / "c.h5")[1])  # the recorded run gave the user's bits


def test_modules_outputs_have_their_paths(case, tmp_path):
    model, _, _, path = case("llama")
    recorder.record(path, [IDS], tmp_path / "c.h5", threads=1)
    recorded, _ = points(tmp_path / "c.h5")
    seen = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _, __, out, name=name: seen.__setitem__(name, out[0] if isinstance(out, tuple) else out))
    with torch.no_grad():
        model(torch.tensor(IDS))
    modules = [n for n, v in seen.items() if isinstance(v, torch.Tensor) and n != "model.rotary_emb"]
    assert len(modules) > 35
    for name in modules:
        value = recorded[name, 0, "output"]
        assert value.shape == tuple(seen[name].shape) and np.linalg.norm(value - seen[name].numpy()) <= 1e-5 * np.linalg.norm(value), name
    assert np.array_equal(recorded["model.layers.1.input_layernorm.weight", 0, "weight"], model.model.layers[1].input_layernorm.weight.detach().numpy())
    assert recorded["input_ids", 0, "input"].tolist() == IDS.tolist()


@pytest.mark.parametrize("name", ["resnet", "regnet"])
def test_values_in_blocks_of_channels_have_the_models_layout_and_path(name):
    """12 and 20 channels fill blocks of neither 8 (AVX2) nor 16 (AVX-512): ONNX Runtime's own values have up to 32, in another order, behind sums and activations."""
    plain, blocked = (points(engine_exports.ran(name, o, wrong=False))[0] for o in ("none", "all"))
    computed = {key: value for key, value in blocked.items() if key[2] == "output" and not key[0].startswith("optimised/")}
    assert len(computed) >= 10 and any("nchwc" in node.domain for node in graphs.optimised(onnx.load(engine_exports.exported(name)[1]), "all", ["CPUExecutionProvider"]).graph.node)
    for key, value in computed.items():
        assert value.shape == plain[key].shape and np.linalg.norm(value - plain[key]) <= 2e-6 * np.linalg.norm(value), key
    assert not [key for key in blocked if key[0].startswith("optimised/") and key[0].endswith("_nchwc")]


def no_mask(graph):
    """Layer 1's softmax reads the scores before the mask is added."""
    node = next(n for n in graph.node if n.op_type == "Softmax" and names.module_of(n) == "model.layers.1.self_attn")
    node.input[0] = next(n for n in graph.node if node.input[0] in n.output).input[0]


def other_gain(graph):
    tensor = next(i for i in graph.initializer if i.name == "model.layers.1.post_attention_layernorm.weight")
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))


@pytest.mark.parametrize("fault, module", [(no_mask, "model.layers.1.self_attn"), (other_gain, "model.layers.1.post_attention_layernorm")])
@pytest.mark.parametrize("optimisation", ["none", "all"])
def test_a_fault_in_the_graph_is_found_at_its_module(case, tmp_path, fault, module, optimisation):
    _, reference, _, path = case("llama")
    model = onnx.load(path)
    fault(model.graph)
    onnx.save(model, tmp_path / "wrong.onnx")
    recorder.record(tmp_path / "wrong.onnx", {"input_ids": IDS}, tmp_path / "c.h5", optimisation=optimisation, threads=1)
    status, report = compare(reference, tmp_path / "c.h5", tmp_path / "out")
    assert status == 1 and inside(report["first_divergence"]["path"].split("/")[0], module), report["first_divergence"]


def test_the_example_to_copy(tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).resolve().parents[2] / "probes/engines/README.md").read_text()
    example = next(e for e in re.findall(r"^```python engine\n(.*?)^```$", page, re.S | re.M) if "onnxruntime" in e)
    ids = onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, [1, 4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [1, 4])
    graph = onnx.helper.make_graph([node("Neg", ["input_ids"], ["a"], "first"), node("Abs", ["a"], ["y"], "second")], "g", [ids], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert points("plain.h5")[0]["second", 0, "output"].tolist() == [[1, 15, 27, 3]] and "second" in str(points("fused.h5")[0])


def node(kind, inputs, outputs, name="", **attributes):
    return onnx.helper.make_node(kind, inputs, outputs, name, **attributes)


def made(nodes, outputs, initializers=(), kind=onnx.TensorProto.FLOAT):
    values = [onnx.helper.make_tensor_value_info(o, kind, None) for o in outputs]
    graph = onnx.helper.make_graph(nodes, "g", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])], values, list(initializers))
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)


def test_names_without_an_exporters_metadata(tmp_path):
    """The exporter of old names nodes by module; a graph of unknown origin keeps its nodes' names."""
    model = made([node("Relu", ["x"], ["a"], "/model/layers.0/act/Relu"), node("Neg", ["a"], ["b"], "/model/layers.0/Neg"), node("Abs", ["b"], ["c"], "mine"),
                  node("Exp", ["c"], ["d"]), node("Exp", ["d"], ["y"])], ["y"])
    assert names.paths(model.graph) == {"a": ["model.layers.0.act"], "b": ["model.layers.0", "model.layers", "model"], "c": ["mine"], "d": ["Exp.0"], "y": ["Exp.1"]}
    onnx.save(model, tmp_path / "m.onnx")
    two = [{"x": np.ones((n, 4), np.float32)} for n in (2, 3)]
    recorder.record(tmp_path / "m.onnx", two, tmp_path / "c.h5")
    recorded, _ = points(tmp_path / "c.h5")
    assert recorded["mine", 0, "output"].shape == (2, 4) and recorded["mine", 1, "output"].shape == (3, 4)


def test_bfloat16_values_are_widened(tmp_path):
    """numpy has no bfloat16: such values arrive as float32, bit for bit what they were."""
    bf16 = onnx.TensorProto.BFLOAT16
    onnx.save(made([node("Cast", ["x"], ["b"], "narrow", to=bf16), node("Cast", ["b"], ["y"], "wide", to=onnx.TensorProto.FLOAT)], ["y"]), tmp_path / "m.onnx")
    x = np.linspace(1, 2, 8, dtype=np.float32).reshape(2, 4)
    result = recorder.record(tmp_path / "m.onnx", [x], tmp_path / "c.h5")[0]["y"]
    recorded, _ = points(tmp_path / "c.h5")
    assert np.array_equal(recorded["narrow", 0, "output"], result) and not np.array_equal(result, x)


def test_bad_input_is_one_clear_line(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"not a model")
    onnx.save(made([node("Relu", ["x"], ["y"])], ["y"]), tmp_path / "m.onnx")
    onnx.save(made([node("NoSuchOperator", ["x"], ["y"])], ["y"]), tmp_path / "u.onnx")
    np.savez(tmp_path / "x.npz", x=np.ones((2, 4)))
    np.savez(tmp_path / "z.npz", z=np.ones((2, 4)))
    np.savez(tmp_path / "empty.npz")
    for model, inputs, text in (("none.onnx", "x.npz", "no such file"), ("no.onnx", "x.npz", "is no ONNX model"), ("u.onnx", "x.npz", "cannot run it"),
                                ("m.onnx", "z.npz", "has no input 'z'; its inputs are x"), ("m.onnx", "empty.npz", "its input 'x' (tensor(float)) is not given"),
                                ("m.onnx", "m.onnx", "is no .npz file")):
        run = subprocess.run([sys.executable, "-m", "parity_probe.engines.onnxruntime", tmp_path / model, "--inputs", tmp_path / inputs, "-o", tmp_path / "c.h5"],
                             capture_output=True, text=True)
        assert run.returncode == 2 and text in run.stderr and run.stderr.count("\n") == 1, run.stderr
    run = subprocess.run([sys.executable, "-m", "parity_probe.engines.onnxruntime", tmp_path / "m.onnx", "--inputs", tmp_path / "x.npz", "-o", tmp_path / "c.h5",
                          "--optimisation", "basic"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with pytest.raises(parity_probe.Error, match="there is no folder"):
        recorder.record(tmp_path / "m.onnx", [np.ones((2, 4))], tmp_path / "nowhere/c.h5")
