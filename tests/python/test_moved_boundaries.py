"""Ports that draw the line between two modules elsewhere: the scale of an embedding inside its module or behind it, an activation or a residual that a module has or leaves to its caller.
Equal names then mean other values, and neither side is wrong."""
import copy

import pytest
import torch
import transformers
from torch import nn

import nameless
from spread_models import gpt2, granite, judged, of_modules, record, saved, spread


class ScaledEmbedding(nn.Embedding):
    def forward(self, ids):
        return super().forward(ids) * self.factor


def scale_inside(model):
    """Granite whose embedding is multiplied in its own module, not by the model (which still multiplies by one)."""
    table, inside = model.model.embed_tokens, ScaledEmbedding(97, 48)
    inside.weight, inside.factor = table.weight, model.model.embedding_multiplier
    model.model.embed_tokens, model.model.embedding_multiplier = inside, 1.
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("inside_is", ["port", "reference"])
def test_a_scale_inside_the_embedding_or_behind_it(inside_is, dtype, tmp_path):
    """Real code on both sides, every op recorded; then a wrong eps two layers on is the only row that fails, and is named."""
    sides = [granite().to(dtype), scale_inside(granite().to(dtype)).to(dtype)]
    reference, port = sides if inside_is == "port" else reversed(sides)
    recorded = record(reference, tmp_path / "reference.h5")
    report, red = judged(recorded, record(port, tmp_path / "healthy.h5"), tmp_path)
    assert report["verdict"] == "pass" and not red, red
    assert any("model.embed_tokens" in warning for warning in report["warnings"]), report["warnings"]
    port.model.layers[1].post_attention_layernorm.variance_epsilon = .1
    report, red = judged(recorded, record(port, tmp_path / "wrong.h5"), tmp_path)
    assert len(red) == 1 and report["first_divergence"]["path"].startswith("model.layers.1.post_attention_layernorm"), red
    assert "norm eps" in report["first_divergence"]["diagnosis"]


def test_a_moved_value_that_is_wrong_fails_where_it_belongs(tmp_path):
    reference, port = granite(), scale_inside(granite())
    port.model.embed_tokens.factor *= 1.03
    report, red = judged(record(reference, tmp_path / "reference.h5"), record(port, tmp_path / "wrong.h5"), tmp_path)
    assert len(red) == 1 and report["first_divergence"]["path"] == "model/mul.0", red
    assert "gain" in report["first_divergence"]["diagnosis"]


def test_a_scale_left_out_is_no_moved_boundary(tmp_path):
    reference, port = granite(), granite()
    port.model.embedding_multiplier = 1.
    report, red = judged(record(reference, tmp_path / "reference.h5"), record(port, tmp_path / "wrong.h5"), tmp_path)
    assert len(red) == 1 and report["first_divergence"]["path"] == "model/mul.0", red
    assert "factor 6.5 left out" in report["first_divergence"]["diagnosis"]


def write_port(model, file, values):
    """The port's modules under the reference's names, with `values(all results in order)` under some of them instead."""
    results = nameless.boundaries(record(model, file.with_suffix(".whole.h5")))
    modules = of_modules(results) | values([(path, array) for path, _, array in results])
    return saved(file, {path: array for path, array in modules.items() if array is not None})


def behind(results, path, kind):
    """The first result of that op after that module's."""
    place = [name for name, _ in results].index(path)
    return next(array for name, array in results[place + 1:] if name == kind)


def activation_in_the_product(results):
    """A fused first product of the feed-forward network: its activation is in it."""
    values = dict(results)
    return {"transformer.h.1.mlp.c_fc": values["transformer.h.1.mlp.act"], "transformer.h.1.mlp.act": None}


def residual_in_the_attention(results):
    return {f"transformer.h.2.attn{name}": value for name, value in (("", behind(results, "transformer.h.2.attn.c_proj", "op add")), (".c_proj", None))}


def norm_in_the_last_layer(results):
    """The model's result, which ends in a norm, under the last layer's name too."""
    return {"transformer.h.3": dict(results)["transformer.ln_f"]}


MOVED = {"activation in the product": (activation_in_the_product, "transformer.h.1.mlp.c_fc"),
         "residual in the attention": (residual_in_the_attention, "transformer.h.2.attn"),
         "norm in the last layer": (norm_in_the_last_layer, "transformer.h.3")}


@pytest.mark.parametrize("what", MOVED)
def test_what_a_module_has_and_what_it_leaves_to_its_caller(what, tmp_path):
    values, path = MOVED[what]
    reference = record(gpt2(), tmp_path / "reference.h5")
    report, red = judged(reference, write_port(gpt2(), tmp_path / "healthy.h5", values), tmp_path)
    assert report["verdict"] == "pass" and not red, red
    assert any(f"the port's {path} is" in warning for warning in report["warnings"]), report["warnings"]
    wrong = gpt2()
    wrong.transformer.h[3].ln_1.eps = .1
    report, red = judged(reference, write_port(wrong, tmp_path / "wrong.h5", values), tmp_path)
    assert list(red) == ["transformer.h.3.ln_1"] and "norm eps" in report["first_divergence"]["diagnosis"], red


def test_a_value_that_the_port_did_not_go_on_from_spoils_nothing_behind_it(tmp_path):
    """Memory that the engine had used again before it was recorded."""
    garbage = lambda results: {"transformer.h.1.mlp.c_fc": dict(results)["transformer.h.1.mlp.c_fc"][::-1, ::-1] * 2}  # noqa: E731
    report, red = judged(record(gpt2(), tmp_path / "reference.h5"), write_port(gpt2(), tmp_path / "port.h5", garbage), tmp_path)
    assert list(red) == ["transformer.h.1.mlp.c_fc"], red
    assert any("went on with another value than it recorded" in warning for warning in report["warnings"]), report["warnings"]


def test_a_soft_cap_left_out_has_a_name(tmp_path):
    """Logits of NanoChat, 15 tanh(x / 15)."""
    config = transformers.NanoChatConfig(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, use_cache=False)
    model = spread(transformers.NanoChatForCausalLM(config))
    reference = record(model, tmp_path / "reference.h5")
    for cap, words in ((None, "soft cap (left out"), (30., "soft cap (cap x 2")):
        port = copy.deepcopy(model)
        port.config.final_logit_softcapping = cap
        report, red = judged(reference, record(port, tmp_path / "port.h5"), tmp_path)
        assert len(red) >= 1 and words in report["first_divergence"]["diagnosis"], (cap, report["first_divergence"])


def test_a_port_in_another_dtype_is_said_once(tmp_path):
    """A port in fp32 of a model in bf16: each row is a missing rounding and says the two dtypes, after a name or without one."""
    reference = record(gpt2().bfloat16(), tmp_path / "reference.h5")
    report, red = judged(reference, record(gpt2().bfloat16().float(), tmp_path / "port.h5"), tmp_path)
    said = [row["diagnosis"] for row in red.values()]
    assert len(said) > 20 and all(text.startswith("missing rounding") and text.count("missing rounding") == 1 for text in said), said
    assert all("the reference has bfloat16 here, the candidate float32" in text for text in said), said
