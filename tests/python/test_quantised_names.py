"""A port with weights of four bits under an engine's names: each product is off by an eighth of itself, everything else is right on its own inputs. All of it is paired, and named."""
import re

import nameless
import pytest
import torch
import transformers
from spread_models import spread
from torch import nn

LAYERS = 3
NAMES = {"self_attn.q_proj": "Qcur", "self_attn.k_proj": "Kcur", "self_attn.v_proj": "Vcur", "self_attn.o_proj": "attn_out", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "": "l_out"}
WHOLE = {"lm_head": "result_output", "model.norm": "result_norm", "model.embed_tokens": "inp_embd"}


def model():
    return spread(transformers.Qwen2ForCausalLM(transformers.Qwen2Config(hidden_size=128, intermediate_size=128, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2, vocab_size=97,
                                                                         use_cache=False)))


def engine_name(_, path):
    layer = re.fullmatch(r"model\.layers\.(\d+)\.?(.*)", path)
    return f"{NAMES[layer[2]]}-{layer[1]}" if layer else WHOLE[path]


def is_kept(path):
    layer = re.fullmatch(r"model\.layers\.(\d+)\.?(.*)", path)
    return layer[2] in NAMES if layer else path in WHOLE


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits(bits, tmp_path):
    inputs = {"input_ids": torch.arange(24)[None] % 97}
    reference = nameless.record(model(), tmp_path / "reference.h5", inputs)
    port = model()
    for name, module in port.named_modules():
        if isinstance(module, nn.Linear) and name != "lm_head":
            step = module.weight.data.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
            module.weight.data = (module.weight.data / step).round() * step
    truth = nameless.rewrite(nameless.record(port, tmp_path / "port.h5", inputs), tmp_path / "candidate.h5", engine_name, is_kept)
    report, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert set(rows) == set(truth), set(truth) - set(rows)
    right = {name: row["path"] for name, row in rows.items() if row["path"].split("/")[0] == truth[name]}
    assert set(right) == set(truth), {name: (rows[name]["path"], truth[name]) for name in set(truth) - set(right)}
    red = {name for name, row in rows.items() if row["verdict"] == "fail"}
    assert red == {name for name, path in truth.items() if path.endswith("_proj")}
    assert all(rows[name]["diagnosis"].startswith(f"weights: int{bits}") for name in red), {rows[name]["diagnosis"][:60] for name in red}
