"""Tables that a model computes when it is built (rotary frequencies, sines of positions) are in no weights file: a port computes its own, by another formula, with other last bits."""
import json
import math

import h5py
import nameless
import pytest
import torch
import transformers
from test_moved_boundaries import judged, spread

PLACES = 600
IDS = torch.randint(3, 97, (1, PLACES), generator=torch.Generator().manual_seed(1))
BASE = 10000.0
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def qwen2():
    return spread(transformers.Qwen2Model(transformers.Qwen2Config(
        vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=1024, use_cache=False)))


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


def leaves(file):
    with h5py.File(file) as dump:
        events = [json.loads(line) for line in bytes(dump["/trace/events"][()]).decode().splitlines()]
    return {name: e.get("computed", False) for e in events if e["e"] == "leaf" for name in e["names"]}


def test_what_a_recording_calls_computed(tmp_path):
    """Buffers that are not persistent and plain attributes; no parameter, persistent buffer or input."""
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
