"""--accept-path: a rounding by the name that the report prints, its place aside; and no fault that only has a rounding's size."""
import numpy as np
import pytest
import torch
import transformers
from spread_models import gpt2, judged, of_modules, record, saved, spread

import nameless
import parity_probe

WIDTH = 48


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + self.linear(self.norm(x))


@pytest.fixture(scope="module")
def wide_residual(tmp_path_factory):
    """(reference in bf16, port whose residual stream stays fp32)."""
    folder = tmp_path_factory.mktemp("residual")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Layer() for _ in range(3))).bfloat16()
    x = torch.randn(2, 11, WIDTH).bfloat16()
    with torch.no_grad(), parity_probe.record(model, folder / "reference.h5"):
        model(x)
    with torch.no_grad(), parity_probe.Writer(folder / "port.h5") as writer:
        x = x.float()
        for i, layer in enumerate(model):
            normed = torch.nn.functional.layer_norm(x.bfloat16(), (WIDTH,), layer.norm.weight, layer.norm.bias)
            product = layer.linear(normed)
            x = x + product
            for name, value in (("norm", normed), ("linear", product)):
                writer.write(f"{i}.{name}", value)
            writer.write(str(i), x)
    return folder / "reference.h5", folder / "port.h5"


def test_a_wide_residual_is_named(wide_residual, tmp_path):
    report, red = judged(*wide_residual, tmp_path)
    assert {"0", "1", "2"} <= set(red) and all("add kept wide" in red[name]["diagnosis"] and red[name]["gate"] == "dtype_path" for name in "012"), red


@pytest.mark.parametrize("name", ["missing rounding: add kept wide", "missing rounding: *", "missing rounding"])
def test_and_declared_by_its_name(wide_residual, name, tmp_path):
    report, red = judged(*wide_residual, tmp_path, "--accept-path", name)
    declared = [op["path"] for op in report["ops"] if op["diagnosis"].startswith("declared (--accept-path missing rounding")]
    assert not set(red) & set("012") and set("012") <= set(declared), (red, declared)
    assert not any("declared nothing" in warning for warning in report["warnings"]), report["warnings"]


@pytest.mark.parametrize("name", ["missing rounding: mul kept wide", "extra rounding"])
def test_another_name_declares_nothing(wide_residual, name, tmp_path):
    report, red = judged(*wide_residual, tmp_path, "--accept-path", name)
    assert set("012") <= set(red) and any("declared nothing" in warning for warning in report["warnings"]), (red, report["warnings"])


def test_a_fault_of_a_rounding_s_size_is_not_declared_by_its_path(tmp_path):
    """Random numbers two thousandths of the values, in fp32: some cast would change as much, though other elements."""
    reference = record(gpt2(), tmp_path / "reference.h5")
    values = of_modules(nameless.boundaries(record(gpt2(), tmp_path / "port.h5")))
    wrong = values["transformer.h.1.mlp.c_fc"]
    values["transformer.h.1.mlp.c_fc"] = wrong * (1 + .002 * np.random.default_rng(0).standard_normal(wrong.shape)).astype(np.float32)
    port = saved(tmp_path / "wrong.h5", values)
    report, red = judged(reference, port, tmp_path, "--accept-path", "transformer.h.1.mlp*")
    said = red["transformer.h.1.mlp.c_fc"]["diagnosis"]
    assert "by its size" in said and "does not declare a rounding that is known by its size alone" in said, said
    name = said.split(" by its size")[0]
    report, red = judged(reference, port, tmp_path, "--accept-path", name)
    assert "transformer.h.1.mlp.c_fc" not in red, red  # who says what the port does there has said so


def bloom(scaled=True):
    model = spread(transformers.BloomForCausalLM(transformers.BloomConfig(vocab_size=97, hidden_size=48, n_layer=2, n_head=3, use_cache=False, attn_implementation="eager")))
    for block in model.transformer.h:
        block.self_attention.inv_norm_factor = block.self_attention.inv_norm_factor if scaled else 1.
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_a_scale_left_out_is_no_sum_in_pieces(dtype, tmp_path):
    """Bloom multiplies scores in `baddbmm`; variants of its arithmetic have to, too."""
    reference = record(bloom().to(dtype), tmp_path / "reference.h5")
    port = record(bloom(scaled=False).to(dtype), tmp_path / "port.h5")
    report, red = judged(reference, port, tmp_path, "--accept-path", "transformer.h.*")
    first = report["first_divergence"]
    assert report["verdict"] == "fail" and first["path"].startswith("transformer.h.0.self_attention"), first
    assert red[first["path"]]["diagnosis"].startswith("attention scale (scores not scaled"), red[first["path"]]["diagnosis"]


class Probabilities(torch.nn.Module):
    scale = .3

    def forward(self, q, k):
        return torch.softmax((q @ k.mT * self.scale).float(), -1)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.probabilities = Probabilities()

    def forward(self, q, k, v):
        return self.probabilities(q, k).to(v.dtype) @ v


@pytest.mark.parametrize("scale", [.3, 1.])
def test_a_wrong_formula_in_another_dtype_is_not_a_rounding(scale, tmp_path):
    """A softmax in bf16 where the reference has fp32: declared, unless its scores are not scaled, too."""
    q, k, v = torch.randn(3, 2, 11, WIDTH, generator=torch.Generator().manual_seed(0)).bfloat16()
    model = Attention()
    with torch.no_grad(), parity_probe.record(model, tmp_path / "reference.h5"):
        model(q, k, v)
    model.probabilities.scale = scale
    with parity_probe.Writer(tmp_path / "port.h5") as writer:
        narrow = model.probabilities(q, k).bfloat16()
        writer.write("probabilities", narrow)
        writer.write("", narrow @ v)
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path)
    assert red["probabilities"]["gate"] == ("dtype_path" if scale == .3 else "logic"), red
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path, "--accept-path", "probabilities")
    assert ("probabilities" in red) == (scale != .3), red


class RMSNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + .2 * torch.randn(WIDTH))

    def forward(self, x):
        return self.weight * self.normed(x).to(x.dtype)

    @staticmethod
    def normed(x):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


def test_it_is_declared_in_every_call(tmp_path):
    """A prompt and three tokens, the normalised value kept wide in each: ops of all calls have one name."""
    torch.manual_seed(0)
    norm, inputs = RMSNorm().bfloat16(), [torch.randn(1, tokens, WIDTH).bfloat16() for tokens in (12, 2, 2, 2)]
    with torch.no_grad(), parity_probe.record(norm, tmp_path / "reference.h5"):
        for x in inputs:
            norm(x)
    with torch.no_grad(), parity_probe.Writer(tmp_path / "port.h5") as writer:
        for x in inputs:
            writer.write("", (norm.weight.float() * norm.normed(x)).bfloat16())
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path)
    named = [op["call"] for op in report["ops"] if "missing rounding (_to_copy kept wide" in op["diagnosis"]]
    assert named == [0, 1, 2, 3], [op["diagnosis"] for op in report["ops"]]
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path, "--accept-path", "missing rounding: _to_copy kept wide")
    assert report["verdict"] == "pass" and not red, [op["diagnosis"] for op in report["ops"] if op["verdict"] == "fail"]
