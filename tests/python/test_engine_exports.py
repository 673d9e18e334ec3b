"""ONNX Runtime, plain and fused, as the port of fourteen architectures: green when healthy, one fault of each graph found at its module."""

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

import onnx  # noqa: E402

import engine_exports  # noqa: E402
from parity_probe.engines import module_paths  # noqa: E402
from parity_probe.engines.module_paths import inside  # noqa: E402
from parity_probe.engines.onnxruntime import names  # noqa: E402


@pytest.mark.parametrize("name", engine_exports.EXPORTS)
def test_healthy_is_green_and_a_fault_is_at_its_module(name):
    reference, _ = engine_exports.exported(name)
    for optimisation in ("none", "all"):
        status, report, _ = engine_exports.compare(reference, engine_exports.ran(name, optimisation, wrong=False))
        assert status == 0 and report["verdict"] == "pass" and report["counts"]["pass"] >= 20, (optimisation, report["findings"])
        status, report, _ = engine_exports.compare(reference, engine_exports.ran(name, optimisation, wrong=True))
        assert status == 1, (optimisation, report["counts"])
        assert inside(report["first_divergence"]["path"].split("/")[0], engine_exports.EXPORTS[name].module), (optimisation, report["first_divergence"])


def test_calls_of_a_shared_layer_are_told_apart():
    """By its weights, used again; not by a norm's ones, of which a module has many."""
    _, file = engine_exports.exported("albert")
    graph = onnx.load(file).graph
    named = [path for paths in names.paths(graph).values() for path in paths]
    layer = "encoder.albert_layer_groups.0.albert_layers.0"
    assert [named.count(f"{layer}.{part}") for part in ("attention.query", "ffn", "full_layer_layer_norm")] == [3, 3, 3]
    assert [named.count(path) for path in ("encoder", "embeddings", "encoder.embedding_hidden_mapping_in")] == [1, 1, 1]

    def node(module, weight, n):
        return module_paths.Node(module, "Mul", "", [f"v{n}", weight], [f"v{n + 1}"], frozenset([weight]) - {"ones"})
    plain = [node("a.one", "ones", 0), node("a.two", "ones", 1), node("b", "w", 2), node("b", "w", 3), node("b", "w", 4)]
    assert module_paths.calls(plain) == {"b": {2: 0, 3: 1, 4: 2}}
    assert [paths for paths in module_paths.paths(plain, ["v5"]).values()] == [["a.one"], ["a.two", "a"], ["b"], ["b"], ["b"]]


def test_there_are_ten_architectures():
    assert len({export.kind for export in engine_exports.EXPORTS.values()}) >= 10
