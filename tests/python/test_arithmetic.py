"""Arithmetic below the cast: ports that really compute so are named, benign ones are not, and what is declared by name is judged through."""
import json
import math

import emulated_arithmetic as port
import nameless
import numpy as np
import pytest
import torch
from torch.nn import functional

import parity_probe
import program

LINEAR = {
    "product inputs: tf32": port.rounded_inputs(port.tf32),
    "product inputs: tf32, truncated": port.rounded_inputs(port.tf32_truncated),
    "product inputs: bf16": port.rounded_inputs(port.bf16),
    "product inputs: fp16": port.rounded_inputs(port.fp16),
    "product inputs: bf16x3": port.bf16x3,
    "accumulation: fp16": port.summed(port.fp16, 16),
    "accumulation: bf16": port.summed(port.bf16, 32),
    "split K: bf16": port.split_k(port.bf16, 4),
    "split K: fp16": port.split_k(port.fp16, 2),
    "weights: fp16": port.weights(port.fp16),
    "weights: bf16": port.weights(port.bf16),
    "weights: Q8_0": port.weights(port.q8_0),
    "weights: Q8_0, inputs too": port.weights(port.q8_0, port.q8_0),
    "weights: int8 per channel": port.weights(port.int8_rows),
    "weights: int4, groups of 64": port.weights(port.int4(64)),
    "weights: MXFP4": port.weights(port.mxfp4),
    "weights: fp8 e4m3 per tensor": port.weights(lambda w: port.scaled_e4m3(w, (0, 1))),
    "extra rounding: result bf16": lambda x, w, b: port.bf16(port.linear(x, w, b)),
    "extra rounding: result fp16": lambda x, w, b: port.fp16(port.linear(x, w, b)),
    "extra rounding: input bf16": lambda x, w, b: port.linear(port.bf16(x), w, b),
    "extra rounding: input fp16": lambda x, w, b: port.linear(port.fp16(x), w, b),
}
ATTENTION = {
    "kv cache: fp16": lambda q, k, v: port.attention(q, port.fp16(k), port.fp16(v)),
    "kv cache: fp16, as ggml": lambda q, k, v: port.attention(*(port.fp16(t) for t in (q, k, v)), p=port.fp16),
    "kv cache: bf16": lambda q, k, v: port.attention(q, port.bf16(k), port.bf16(v)),
    "kv cache: fp8 e4m3": lambda q, k, v: port.attention(q, port.e4m3(k), port.e4m3(v)),
    "kv cache: fp8 e5m2": lambda q, k, v: port.attention(q, port.e5m2(k), port.e5m2(v)),
    "kv cache: fp8 e4m3 per tensor": lambda q, k, v: port.attention(q, *(port.scaled_e4m3(t, (0, 1, 2, 3)) for t in (k, v))),
    "kv cache: fp8 e4m3 per head": lambda q, k, v: port.attention(q, *(port.scaled_e4m3(t, (0, 2, 3)) for t in (k, v))),
    "kv cache: int8 per token": lambda q, k, v: port.attention(q, port.int8_rows(k), port.int8_rows(v)),
    "attention probabilities: fp16": lambda q, k, v: port.attention(q, k, v, p=port.fp16),
    "attention probabilities: bf16": lambda q, k, v: port.attention(q, k, v, p=port.bf16),
    "product inputs: tf32": lambda q, k, v: port.attention(*(port.tf32(t) for t in (q, k, v)), p=port.tf32),
    "fast math: exp": lambda q, k, v: port.attention(q, k, v, exp=port.schraudolph),
}
FUNCTIONS = {  # module, its port
    "fast math: rsqrt": (torch.nn.LayerNorm(128), lambda m, x: port.layer_norm(x, m.weight.numpy(), m.bias.numpy(), port.quake_rsqrt)),
    "fast math: erf": (torch.nn.GELU(), lambda m, x: port.gelu(x, port.hastings_erf)),
    "fast math: tanh": (torch.nn.GELU("tanh"), lambda m, x: port.gelu_tanh(x, port.pade_tanh)),
    "fast math: exp": (torch.nn.SiLU(), lambda m, x: x / (1 + port.schraudolph(-x))),
    "fast math: fp16 table": (torch.nn.GELU("tanh"), lambda m, x: port.fp16(port.gelu_tanh(port.fp16(x), np.tanh))),
}


class Tiny(torch.nn.Module):
    def forward(self, x):
        return x * 3e-38


FUNCTIONS["denormals: flushed"] = Tiny(), lambda m, x: flushed(x * np.float32(3e-38))


def flushed(x):
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)


class Attention(torch.nn.Module):
    def forward(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v)


class Layers(torch.nn.Module):
    """Each of them on the same inputs."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.ModuleList(torch.nn.Linear(128, 96) for _ in LINEAR)
        self.attention = torch.nn.ModuleList(Attention() for _ in ATTENTION)
        self.function = torch.nn.ModuleList(m for m, _ in FUNCTIONS.values())

    def forward(self, x, q, k, v):
        return [layer(x).sum() for layer in self.linear] + [layer(q, k, v).sum() for layer in self.attention] + [f(x).sum() for f in self.function]


def compare(reference, candidate, folder, *options):
    done = program.run("compare", reference, candidate, "--out", folder, *options)
    return done, {op["path"]: op for op in json.loads((folder / "report.json").read_text())["ops"]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arithmetic")
    torch.manual_seed(3)
    model = Layers().eval().requires_grad_(False)
    x, (q, k, v) = torch.randn(80, 128), torch.randn(3, 1, 4, 48, 32)
    v[..., ::8] *= 1e-6  # below fp16's normal range, where alone it differs from TF32
    with torch.no_grad(), parity_probe.record(model, folder / "reference.h5"):
        model(x, q, k, v)
    return folder, model, x.numpy(), (q.numpy(), k.numpy(), v.numpy())


def write(file, model, x, qkv, change):
    """A port's recording: `change(kind, name, right)` is what it has for a layer that rightly gives `right()`."""
    with parity_probe.Writer(file) as w:
        for i, (layer, name) in enumerate(zip(model.linear, LINEAR)):
            args = x, layer.weight.numpy(), layer.bias.numpy()
            w.write(f"linear.{i}", change(lambda: LINEAR[name](*args), lambda: port.linear(*args)))
        for i, name in enumerate(ATTENTION):
            w.write(f"attention.{i}", change(lambda: ATTENTION[name](*qkv), lambda: port.attention(*qkv)))
        for i, (module, wrong) in enumerate(FUNCTIONS.values()):
            w.write(f"function.{i}", change(lambda: wrong(module, x), lambda: module(torch.from_numpy(x)).numpy()))


NAMES = {f"{kind}.{i}": name for kind, table in (("linear", LINEAR), ("attention", ATTENTION), ("function", FUNCTIONS)) for i, name in enumerate(table)}


@pytest.fixture(scope="module")
def judged(recorded):
    folder, model, x, qkv = recorded
    write(folder / "port.h5", model, x, qkv, lambda wrong, right: wrong())
    return compare(folder / "reference.h5", folder / "port.h5", folder / "report")[1]


@pytest.mark.parametrize("path", NAMES)
def test_what_a_port_really_does_is_named(judged, path):
    row, name = judged[path], NAMES[path].removesuffix(", as ggml").removesuffix(", inputs too")
    assert row["verdict"] == "fail" and row["gate"] == "dtype_path", row
    assert row["diagnosis"].startswith(f"{name} ("), row["diagnosis"]
    assert "of the elements bitwise" in row["diagnosis"]


def test_nothing_is_named_where_a_sum_is_only_taken_otherwise(recorded, tmp_path):
    folder, model, x, qkv = recorded
    write(folder / "benign.h5", model, x, qkv, lambda wrong, right: right())
    done, rows = compare(folder / "reference.h5", folder / "benign.h5", tmp_path)
    assert done.returncode != 1 and {rows[p]["verdict"] for p in NAMES} == {"pass"}, done.stdout


def test_what_is_declared_by_name_passes_and_nothing_else_does(judged, recorded, tmp_path):
    folder = recorded[0]
    done, rows = compare(folder / "reference.h5", folder / "port.h5", tmp_path, "--accept-path", "kv cache: fp16")
    passed = {NAMES[p] for p in NAMES if rows[p]["verdict"] == "pass"}
    assert passed == {"kv cache: fp16", "kv cache: fp16, as ggml"} and done.returncode == 1
    assert rows["attention.0"]["diagnosis"].startswith("declared (--accept-path kv cache: fp16): kv cache: fp16 (")


@pytest.mark.parametrize("fault", [None, "scale"])
def test_the_rest_is_judged_through_what_is_declared(recorded, tmp_path, fault):
    """The same stretch has a cache in fp16 and, a hundredth of its size, a mistake of its own."""
    folder, model, x, (q, k, v) = recorded
    scale = 1 / math.sqrt(32) * (1.0001 if fault else 1)
    out = port.softmax(q @ port.fp16(k).swapaxes(-1, -2) * np.float32(scale)) @ port.fp16(v)
    with parity_probe.Writer(tmp_path / "port.h5") as w:
        w.write("attention.0", out)
    options = "--accept-path", "kv cache: fp16"
    row = compare(folder / "reference.h5", tmp_path / "port.h5", tmp_path / "report", *options)[1]["attention.0"]
    assert row["verdict"] == ("fail" if fault else "pass"), row["diagnosis"]
    assert not fault or "beside what is declared" in row["diagnosis"]


class Bias(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.conv = torch.nn.Linear(96, 128), torch.nn.Linear(128, 96), torch.nn.Conv1d(96, 64, 3)

    def forward(self, x):
        y = self.down(self.up(x))
        return y, self.conv(y.t()[None])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_product_rounded_before_its_bias_is_one_cause(tmp_path, dtype):
    torch.manual_seed(5)
    model = Bias().eval().requires_grad_(False).to(dtype)
    x = torch.randn(64, 96).to(dtype)

    def linear(layer, x):
        return (x.float() @ layer.weight.float().t()).to(dtype) + layer.bias

    def conv(layer, x):
        return functional.conv1d(x.float(), layer.weight.float()).to(dtype) + layer.bias[:, None]

    with torch.no_grad():
        with parity_probe.record(model, tmp_path / "reference.h5"):
            model(x)
        with parity_probe.Writer(tmp_path / "port.h5") as w:
            up = linear(model.up, x)
            down = linear(model.down, up)
            for path, value in (("up", up), ("down", down), ("conv", conv(model.conv, down.t()[None]))):
                w.write(path, value)
    done, rows = compare(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path / "report")
    for path in ("up", "down", "conv"):
        assert rows[path]["diagnosis"].startswith("extra rounding: product before bias ("), rows[path]["diagnosis"]
    assert "extra rounding: product before bias: the product rounded to" in done.stdout
    done, rows = compare(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path / "accepted", "--accept-path", "extra rounding: product before bias")
    assert {rows[path]["verdict"] for path in ("up", "down", "conv")} == {"pass"}, done.stdout


class Gated(torch.nn.Module):
    def forward(self, gate, up):
        return functional.silu(gate) * up


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = Gated()

    def forward(self, gate, up):
        return self.act(gate, up) * 2


def test_a_cast_that_a_fusion_leaves_out_is_named(tmp_path):
    gate, up = torch.randn(2, 64, 96, generator=torch.Generator().manual_seed(7)).bfloat16()
    model = Doubled()
    with parity_probe.record(model, tmp_path / "reference.h5"):
        model(gate, up)
    with parity_probe.Writer(tmp_path / "port.h5") as w:
        w.write("act", (functional.silu(gate.float()) * up.float()).bfloat16())
    row = compare(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path / "report")[1]["act"]
    assert row["gate"] == "dtype_path" and row["diagnosis"].startswith("missing rounding ("), row["diagnosis"]


class JointAttention(torch.nn.Module):
    """Of image and text; the result's image is a part that is not contiguous: LibTorch takes a product and a sum for its linear layer, each rounded."""
    contiguous = False

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(48), torch.nn.Linear(48, 144), torch.nn.Linear(48, 48)

    def forward(self, image, text):
        q, k, v = (part.unflatten(-1, (3, 16)).transpose(1, 2) for part in self.qkv(self.norm(torch.cat([image, text], 1))).chunk(3, -1))
        joint = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        part = joint[:, :image.shape[1]]
        return self.out(part.contiguous() if self.contiguous else part)


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(JointAttention() for _ in range(3))

    def forward(self, image, text):
        for block in self.blocks:
            image = image + block(image, text)
        return image


def test_a_bias_added_before_its_product_is_rounded_is_valid_in_a_long_stretch(tmp_path):
    torch.manual_seed(5)
    model, inputs = Blocks().eval().to(torch.bfloat16), [torch.randn(2, n, 48).to(torch.bfloat16) for n in (24, 10)]
    with torch.no_grad():
        for bias in (p for name, p in model.named_parameters() if name.endswith("bias")):
            bias.normal_(0, .3)
        with parity_probe.record(model, tmp_path / "reference.h5"):
            model(*inputs)
        JointAttention.contiguous = True
        try:
            with parity_probe.Writer(tmp_path / "port.h5") as port:
                for path, module in model.named_modules():
                    if isinstance(module, JointAttention) or not path:
                        module.register_forward_hook(lambda _, __, out, path=path: (port.write(path, out), None)[1])
                model(*inputs)
        finally:
            JointAttention.contiguous = False
    report, rows = nameless.compare(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path / "report")
    assert report["verdict"] == "pass" and {"blocks.0", "blocks.1", "blocks.2"} <= set(rows), [op["diagnosis"] for op in rows.values()]
    assert any(op["forced"]["bitwise_equal_share"] < 1 for op in rows.values())  # rounded once, not twice
