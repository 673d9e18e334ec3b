"""Programs of torch.export and torch.compile as ports of the eager model: their values under the modules' paths, and a fault in the graph at its module."""
import json

import h5py
import numpy as np
import pytest
import program

torch = pytest.importorskip("torch")

import parity_probe  # noqa: E402
from parity_probe.engines import torch_programs  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.act, self.down = torch.nn.LayerNorm(32), torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = torch.nn.ModuleList([Block(), Block()]), torch.nn.Linear(32, 16)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch_programs")
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(24, 32)
    with torch.no_grad(), parity_probe.record(model, folder / "ref.h5"):
        expected = model(x)
    return model, x, expected, folder / "ref.h5"


def compare(reference, candidate, out):
    run = program.run("compare", reference, candidate, "--out", out)
    return run.returncode, json.loads((out / "report.json").read_text())


def outputs(path):
    with h5py.File(path) as f:
        events = [json.loads(line) for line in bytes(f["trace/events"][()]).decode().splitlines()]
        return {e["path"]: f["values"][e["k"]][()] for e in events if e["e"] == "point" and e["role"] == "output"}


def test_an_exported_program_passes(case, tmp_path):
    model, x, expected, reference = case
    program = torch.export.export(model, (x,))
    torch.export.save(program, tmp_path / "m.pt2")
    result = torch_programs.record_exported(tmp_path / "m.pt2", (x,), tmp_path / "c.h5")
    assert torch.equal(result, expected)
    values = outputs(tmp_path / "c.h5")
    assert {"layers.0", "layers.1.norm", "layers.1.act", "layers.0.down", "head"} <= set(values) and np.array_equal(values["head"], expected.numpy())
    status, report = compare(reference, tmp_path / "c.h5", tmp_path / "out")
    assert status == 0 and report["counts"]["pass"] >= 11, report["counts"]


def test_a_fault_in_an_exported_program_is_found_at_its_module(case, tmp_path):
    model, x, _, reference = case
    program = torch.export.export(model, (x,))
    nodes = [n for n in program.graph.nodes if n.target == torch.ops.aten.gelu.default]
    nodes[1].kwargs = {"approximate": "tanh"}
    torch_programs.record_exported(program, (x,), tmp_path / "c.h5")
    status, report = compare(reference, tmp_path / "c.h5", tmp_path / "out")
    assert status == 1 and report["first_divergence"]["path"] == "layers.1.act" and "GELU" in report["first_divergence"]["diagnosis"]


def test_a_captured_graph_passes(case, tmp_path):
    model, x, expected, reference = case
    result = torch_programs.record_captured(model, (x,), tmp_path / "c.h5")
    assert torch.allclose(result, expected, atol=1e-6)
    values = outputs(tmp_path / "c.h5")
    assert {"layers.0", "layers.1.act", "head", "layers.1.act/ERF.0"} <= set(values) and np.array_equal(values["head"], result.numpy())
    status, report = compare(reference, tmp_path / "c.h5", tmp_path / "out")
    assert status == 0 and report["counts"]["pass"] >= 8, report["counts"]


def test_a_compiled_program_gives_its_results(case, tmp_path):
    model, x, expected, _ = case
    result = torch_programs.record_compiled(model, (x,), tmp_path / "c.h5")  # inductor
    values = outputs(tmp_path / "c.h5")
    assert torch.allclose(result, expected, atol=1e-6) and list(values) == [""] and np.array_equal(values[""], result.numpy())


def test_bad_input_is_one_clear_line(case, tmp_path):
    (tmp_path / "no.pt2").write_bytes(b"no")
    for program, text in ((case[0], "is no torch.export.ExportedProgram"), (tmp_path / "none.pt2", "no such file"), (tmp_path / "no.pt2", "is no exported program")):
        with pytest.raises(parity_probe.Error, match=text) as raised:
            torch_programs.record_exported(program, (case[1],), tmp_path / "c.h5")
        assert "\n" not in str(raised.value)
