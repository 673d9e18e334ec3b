"""Tables that a model computes when it is built (rotary frequencies, sines of positions) are in no weights file: a port computes its own, by another formula, with other last bits."""
import json
import math

import h5py
import nameless
import pytest
import torch
import transformers
from diffusers.models.attention import BasicTransformerBlock
from diffusers.models.embeddings import SinusoidalPositionalEmbedding
from spread_models import judged, spread

import parity_probe
from parity_probe import position_tables

PLACES = 600
IDS = torch.randint(3, 97, (1, PLACES), generator=torch.Generator().manual_seed(1))
BASE = 10000.0
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def qwen2():
    return spread(transformers.Qwen2Model(transformers.Qwen2Config(
        vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=1024, use_cache=False)))


def apertus():   # frequencies scaled for longer texts, as Llama 3's
    return spread(transformers.ApertusForCausalLM(transformers.ApertusConfig(
        vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, use_cache=False)).model)


def gptj():
    return spread(transformers.GPTJModel(transformers.GPTJConfig(vocab_size=97, n_positions=1024, n_embd=48, n_layer=2, n_head=2, rotary_dim=16, n_inner=80, use_cache=False)))


def m2m_100():
    return spread(transformers.M2M100Model(transformers.M2M100Config(
        vocab_size=97, d_model=48, encoder_layers=2, decoder_layers=1, encoder_ffn_dim=80, decoder_ffn_dim=80, encoder_attention_heads=2, decoder_attention_heads=2,
        max_position_embeddings=1024, use_cache=False)))


def with_tables(model, name, table):
    """`model` with its buffers of that name as `table(buffer)` has them, in their dtype."""
    found = 0
    for module in model.modules():
        if name in module._buffers and name in module._non_persistent_buffers_set:
            module._buffers[name] = table(module._buffers[name]).to(module._buffers[name].dtype)
            found += 1
    assert found, f"no table called {name}"
    return model


def sines(places, frequencies, first=0):
    angles = torch.outer(torch.arange(first, first + places, dtype=torch.float64), frequencies)
    return torch.cat([angles.sin(), angles.cos()], 1)


def by_exp(count, base, steps=None):
    """Frequencies in float64, where the models take a power, or exp, in float32."""
    return torch.exp(torch.arange(count, dtype=torch.float64) * (-math.log(base) / (steps or count)))


def frequencies(base):
    return lambda buffer: by_exp(len(buffer), base)


def gptj_table(base, first=0):
    return lambda buffer: sines(len(buffer), by_exp(buffer.shape[1] // 2, base), first)


def m2m_table(base):
    def make(buffer):
        half = buffer.shape[1] // 2
        table = sines(len(buffer), by_exp(half, base, half - 1))
        table[1] = 0   # the padding's row
        return table
    return make


# (model, buffer, an honest port's table, a wrong port's)
MODELS = {
    "frequencies": (qwen2, "inv_freq", frequencies(BASE), frequencies(1.02 * BASE)),
    "sines that each layer has": (gptj, "embed_positions", gptj_table(BASE), gptj_table(BASE, first=1)),
    "sines of positions": (m2m_100, "weights", m2m_table(BASE), m2m_table(1.02 * BASE)),
}


def recorded(model, file):
    inputs = {"input_ids": IDS, **({"decoder_input_ids": IDS[:, :40]} if isinstance(model, transformers.M2M100Model) else {})}
    return nameless.record(model, file, inputs)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("case", MODELS.values(), ids=MODELS)
def test_a_table_of_the_ports_own(case, dtype, tmp_path):
    make, name, honest, wrong = case
    reference = recorded(make().to(dtype), tmp_path / "reference.h5")
    for table, verdict in ((honest, "pass"), (wrong, "fail")):
        model = with_tables(make().to(dtype), name, table)
        report, red = judged(reference, recorded(model, tmp_path / "port.h5"), tmp_path)
        assert report["verdict"] == verdict, (verdict, {path: op["diagnosis"] for path, op in red.items()})


class Placed(torch.nn.Module):
    """diffusers' sines of positions, which a state dict keeps, before a block of its own."""
    def __init__(self):
        super().__init__()
        self.pos_embed = SinusoidalPositionalEmbedding(48, PLACES)
        self.block = BasicTransformerBlock(48, 4, 12)

    def forward(self, x):
        return self.block(self.pos_embed(x))


def placed_table(first=0):
    def make(buffer):
        table = sines(PLACES, by_exp(24, BASE), first)   # PLACES, sines and then cosines
        return table.unflatten(1, (2, 24)).transpose(1, 2).reshape(buffer.shape)
    return make


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_a_table_that_a_state_dict_keeps(dtype, tmp_path):
    x = torch.randn(1, PLACES, 48, generator=torch.Generator().manual_seed(2)).to(dtype)
    reference = nameless.record(spread(Placed()).to(dtype), tmp_path / "reference.h5", {"x": x})
    for first, verdict in ((0, "pass"), (1, "fail")):
        model = spread(Placed()).to(dtype)
        model.pos_embed.pe = placed_table(first)(model.pos_embed.pe).to(dtype)
        report, red = judged(reference, nameless.record(model, tmp_path / "port.h5", {"x": x}), tmp_path)
        assert report["verdict"] == verdict, (verdict, {path: op["diagnosis"] for path, op in red.items()})


def with_frequencies(dtype, kept, make=qwen2):
    """A model in `dtype`, its frequencies in fp32, as from_pretrained leaves them, or rounded, as model.to(bfloat16) does."""
    model, other = make().to(dtype), make() if kept else make().to(torch.bfloat16)
    for name in ("inv_freq", "original_inv_freq"):
        model.rotary_emb._buffers[name] = other.rotary_emb._buffers[name]
    return model


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("rounds, name", [("port", "extra rounding"), ("reference", "missing rounding")])
def test_frequencies_that_one_side_rounds_are_a_dtype_path(rounds, name, dtype, tmp_path):
    reference, port = (recorded(with_frequencies(dtype, kept=side != rounds), tmp_path / f"{side}.h5") for side in ("reference", "port"))
    report, red = judged(reference, port, tmp_path)
    first = report["first_divergence"]
    assert first["gate"] == "dtype_path" and first["path"].startswith("rotary_emb") and first["diagnosis"].startswith(f"{name} ("), red
    assert rounds == "port" or "frequencies not rounded to BFloat16" in first["diagnosis"]


def without_tables(model, file, inputs):
    """A port's recording of its layers' results, without cosines and sines."""
    with parity_probe.Writer(file) as w, torch.no_grad():
        def keep(name):
            def hook(_, args, out):
                w.write(name, out[0] if isinstance(out, tuple) else out)
            return hook
        for name, module in model.named_modules():
            if name.startswith("layers."):
                module.register_forward_hook(keep(name))
        w.write("", model(**inputs).last_hidden_state)
    return file


@pytest.mark.parametrize("make, places", [(qwen2, 24), (apertus, 64), (qwen2, PLACES)])
def test_frequencies_in_full_are_no_fault_within_the_limits(make, places, tmp_path):
    """A port that computes its own is nearer to the formula than a reference that rounds them: over few positions that is less than the rounding of q and k."""
    inputs = {"input_ids": IDS[:, :places]}
    reference = nameless.record(with_frequencies(torch.bfloat16, False, make), tmp_path / "reference.h5", inputs)
    port = without_tables(with_frequencies(torch.bfloat16, True, make), tmp_path / "port.h5", inputs)
    report, red = judged(reference, port, tmp_path)
    assert report["verdict"] == ("pass" if places < PLACES else "fail"), {path: op["diagnosis"] for path, op in red.items()}
    assert places < PLACES or "frequencies not rounded to BFloat16" in report["first_divergence"]["diagnosis"], report["first_divergence"]


def test_tables_of_positions_are_known_by_what_they_hold():
    rotary = by_exp(16, BASE)
    angles = torch.outer(torch.arange(40.), rotary.float())
    interleaved = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for table in (rotary, torch.cat([angles.cos(), angles.sin()], 1), interleaved[None]):
            assert position_tables.is_table(table.to(dtype))
    assert position_tables.is_table(torch.tensor([[0., 1, 0, 1], [.5, .5, .5, .5]]).to(torch.float8_e5m2))
    torch.manual_seed(0)
    trained = torch.nn.Embedding(40, 16).weight
    for other in (trained, trained.data, trained.data.tanh(), torch.rand(40), torch.ones(16), torch.linspace(1, .1, 16), torch.eye(16), torch.zeros(4, 4), torch.tril(torch.ones(9, 9)),
                  angles.sin(), torch.arange(40), angles[1:].cos(), torch.nn.Parameter(interleaved),
                  torch.eye(16).to_sparse(), torch.empty(4, 4, device="meta"), torch.empty(9, device="meta"), torch.empty(0, 3)):
        assert not position_tables.is_table(other), other


def leaves(file):
    with h5py.File(file) as dump:
        events = [json.loads(line) for line in bytes(dump["/trace/events"][()]).decode().splitlines()]
    return {name: e.get("computed", False) for e in events if e["e"] == "leaf" for name in e["names"]}


def test_what_a_recording_calls_computed(tmp_path):
    """Buffers that are not persistent, tables of positions and plain attributes; no parameter, other buffer or input."""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)
            self.register_buffer("window", torch.hann_window(4), persistent=False)
            self.scale, self.angles = torch.nn.Parameter(torch.rand(4)), [torch.rand(4)]

        def forward(self, x):
            return self.norm(self.linear(x)) * self.window * self.scale + self.angles[0]

    found = leaves(nameless.record(Model().eval(), tmp_path / "model.h5", {"x": torch.rand(3, 4)}))
    assert {name for name, computed in found.items() if computed} == {"weights/window", "weights/angles.0"}
    assert {"weights/linear.weight", "weights/norm.running_mean", "weights/scale", "inputs/0/x"} <= found.keys()
