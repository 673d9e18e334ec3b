"""ONNX Runtime, plain and fused, as the port of fourteen architectures: green when healthy, one fault of each graph found at its module."""
import os
import pathlib

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

import engine_exports  # noqa: E402
from parity_probe.engines.module_paths import inside  # noqa: E402

BINARY = os.environ.get("PARITY_CHECK_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/dev/parity-check"))


@pytest.mark.parametrize("name", engine_exports.EXPORTS)
def test_healthy_is_green_and_a_fault_is_at_its_module(name, tmp_path):
    reference, file = engine_exports.export(name, tmp_path)
    for optimisation in ("none", "all"):
        healthy = engine_exports.port(name, file, tmp_path / f"{optimisation}.h5", optimisation, wrong=False)
        status, report, _ = engine_exports.compare(BINARY, reference, healthy)
        assert status == 0 and report["verdict"] == "pass" and report["counts"]["pass"] >= 20, (optimisation, report["findings"])
        faulty = engine_exports.port(name, file, tmp_path / f"{optimisation}.wrong.h5", optimisation, wrong=True)
        status, report, _ = engine_exports.compare(BINARY, reference, faulty)
        assert status == 1, (optimisation, report["counts"])
        assert inside(report["first_divergence"]["path"].split("/")[0], engine_exports.EXPORTS[name].module), (optimisation, report["first_divergence"])


def test_there_are_ten_architectures():
    assert len({export.kind for export in engine_exports.EXPORTS.values()}) >= 10
