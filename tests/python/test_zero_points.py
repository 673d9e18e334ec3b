"""INT8 weights whose zero point is wrong: found at their layer and named, beside right ones."""
import json

import emulated_arithmetic as port
import pytest
import torch
import program

import parity_probe

FORMATS = {
    "int8 asymmetric per channel": port.int8_zero(lambda zero: zero),
    "int8 per channel, zero point one too high": port.int8_rows_moved(1),
    "int8 per channel, zero point one too low": port.int8_rows_moved(-1),
    "int8 asymmetric per channel, zero point one too high": port.int8_zero(lambda zero: zero + 1),
    "int8 asymmetric per channel, zero point one too low": port.int8_zero(lambda zero: zero - 1, signed=False),
    "int8 asymmetric per channel, zero point of signed bytes left out": port.int8_zero(lambda zero: 0),
    "int8 asymmetric per channel, zero point of unsigned bytes left out": port.int8_zero(lambda zero: 0, signed=False),
}


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(128, 96), torch.nn.Linear(96, 64)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def recorded(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("zero") / "reference.h5"
    torch.manual_seed(3)
    model, x = Layers().eval().requires_grad_(False).to(request.param), torch.randn(80, 128).to(request.param)
    with parity_probe.record(model, file):
        model(x)
    return file, model, x


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_found_and_named(recorded, name, tmp_path):
    file, model, x = recorded
    bytes_read = FORMATS[name]

    def linear(x, layer, read):
        y = port.linear(x.float().numpy(), read(layer.weight.float().numpy()), layer.bias.float().numpy())
        return torch.from_numpy(y).to(x.dtype)

    with parity_probe.Writer(tmp_path / "port.h5") as w:
        first = linear(x, model.first, bytes_read)
        w.write("first", first)
        w.write("second", linear(torch.relu(first), model.second, lambda weight: weight))
    program.run("compare", file, tmp_path / "port.h5", "--out", tmp_path, "-q")
    rows = {op["path"]: op for op in json.loads((tmp_path / "report.json").read_text())["ops"]}
    assert rows["first"]["verdict"] == "fail" and rows["second"]["verdict"] == "pass"
    assert rows["first"]["diagnosis"].startswith(f"weights: {name} ("), rows["first"]["diagnosis"]
