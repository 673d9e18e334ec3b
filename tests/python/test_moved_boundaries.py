"""Ports that draw the line between two modules elsewhere: the scale of an embedding inside its module or behind it, an activation or a residual that a module has or leaves to its caller.
Equal names then mean other values, and neither side is wrong."""
import copy
import re

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import nameless
import parity_probe

IDS = torch.randint(0, 97, (2, 11), generator=torch.Generator().manual_seed(1))


def spread(model):
    """Weights at the scale of trained ones, so that everything shows."""
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            gain = weight.dim() < 2 and ("norm" in name or "ln_" in name) and name.endswith("weight")
            weight.copy_(torch.randn(weight.shape, generator=g) / weight.shape[-1] ** .5 if weight.dim() > 1 else gain + .1 * torch.randn(weight.shape, generator=g))
    return model.eval()


def granite():
    config = transformers.GraniteConfig(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, embedding_multiplier=6.5,
                                        residual_multiplier=.4, logits_scaling=3., attention_multiplier=.3, use_cache=False)
    return spread(transformers.GraniteForCausalLM(config))


class ScaledEmbedding(nn.Embedding):
    def forward(self, ids):
        return super().forward(ids) * self.factor


def scale_inside(model):
    """Granite whose embedding is multiplied in its own module, not by the model (which still multiplies by one)."""
    table, inside = model.model.embed_tokens, ScaledEmbedding(97, 48)
    inside.weight, inside.factor = table.weight, model.model.embedding_multiplier
    model.model.embed_tokens, model.model.embedding_multiplier = inside, 1.
    return model


def gpt2():
    config = transformers.GPT2Config(n_layer=4, n_embd=48, n_head=4, vocab_size=97, n_positions=32, use_cache=False, bos_token_id=1, eos_token_id=2)
    return spread(transformers.GPT2LMHeadModel(config))


def record(model, file):
    return nameless.record(model, file, {"input_ids": IDS})


def judged(reference, candidate, folder):
    report, _ = nameless.compare(reference, candidate, folder / "report")
    red = {op["path"]: op for op in report["ops"] if op["verdict"] not in ("pass", "inconclusive")}
    return report, red


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
    modules = {path: array for path, _, array in results if not path.startswith("op ")}
    modules |= values([(path, array) for path, _, array in results])
    with parity_probe.Writer(file) as writer:
        for path, array in modules.items():
            if array is not None:
                writer.write(path, np.ascontiguousarray(array))
    return file


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


def opt():
    config = transformers.OPTConfig(vocab_size=97, hidden_size=48, ffn_dim=80, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=48, use_cache=False)
    return spread(transformers.OPTForCausalLM(config))


def layers(model):
    return model.model.decoder.layers


def scale_in_the_query(model):
    """Attention's scale in the weights of q, as ports fold it: attention itself is called with 1."""
    for layer in layers(model):
        attention = layer.self_attn
        with torch.no_grad():
            attention.q_proj.weight.mul_(attention.scaling)
            attention.q_proj.bias.mul_(attention.scaling)
        attention.scaling = 1.
    return model


def norm_in_the_product(model):
    """A norm's weight and bias in the product behind it: the norm itself has none."""
    for layer in layers(model):
        norm, product = layer.final_layer_norm, layer.fc1
        with torch.no_grad():
            product.bias.add_(product.weight @ norm.bias)
            product.weight.mul_(norm.weight)
            norm.weight.fill_(1)
            norm.bias.zero_()
    return model


class Fused(nn.Linear):
    def forward(self, x):
        return super().forward(x).relu()


def relu_in_the_product(model):
    """What the port calls fc1 is behind the ReLU. Applied once more it changes nothing, so what follows agrees either way."""
    for layer in layers(model):
        layer.fc1.__class__ = Fused
    return model


FOLDED = {"scale in the query": (scale_in_the_query, r"self_attn\.q_proj(/addmm\.0)? is (the reference's divided by 3\.464|another value .*self_attn/mul\.0 = )"),
          "norm in the product": (norm_in_the_product, r"final_layer_norm(/native_layer_norm\.0)? is the reference's without a factor and an offset a channel"),
          "ReLU in the product": (relu_in_the_product, r"fc1 is (another value|the value of)")}


@pytest.mark.parametrize("level", ["module", "op"])
@pytest.mark.parametrize("what", FOLDED)
def test_what_a_port_has_folded_into_its_weights(what, level, tmp_path):
    """The values of these names are others and nothing is wrong; a fault two values on is the only one."""
    fold, words = FOLDED[what]
    reference = record(opt(), tmp_path / "reference.h5")

    def port(model, file):
        with torch.no_grad(), parity_probe.record(model, tmp_path / file, level=level):
            model(input_ids=IDS)
        return tmp_path / file
    report, red = judged(reference, port(fold(opt()), "healthy.h5"), tmp_path)
    assert report["verdict"] == "pass" and not red, red
    assert any(re.search(words, warning) for warning in report["warnings"]), report["warnings"]
    wrong = fold(opt())
    layers(wrong)[1].fc2.bias.data.zero_()
    report, red = judged(reference, port(wrong, "wrong.h5"), tmp_path)
    assert red and report["first_divergence"]["path"].startswith("model.decoder.layers.1.fc2"), red


@pytest.mark.parametrize("what, path", {"scale": "self_attn.q_proj", "norm": "final_layer_norm", "ReLU": "activation_fn"}.items())
def test_what_is_left_out_is_not_folded(what, path, tmp_path):
    """The same values without the other half of the fold: the port goes on from them, and that is the fault."""
    port = opt()
    layer = layers(port)[1]
    if what == "scale":
        layer.self_attn.q_proj.weight.data.mul_(.5)
    elif what == "norm":
        layer.final_layer_norm.weight.data.fill_(1)
    else:
        layer.activation_fn = nn.Identity()
    report, red = judged(record(opt(), tmp_path / "reference.h5"), record(port, tmp_path / "port.h5"), tmp_path)
    assert report["verdict"] == "fail" and report["first_divergence"]["path"].startswith(f"model.decoder.layers.1.{path}"), red


def test_every_batch_norm_of_a_deep_network_folded_into_its_convolution(tmp_path):
    """52 of them, as an engine deploys it; one of them folded wrong."""
    def mobilenet():
        model = transformers.MobileNetV2Model(transformers.MobileNetV2Config(depth_multiplier=.35))
        g = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for name, value in [*model.named_parameters(), *model.named_buffers()]:
                if value.dim() > 1:
                    value.copy_(torch.randn(value.shape, generator=g) / value[0].numel() ** .5)
                elif value.is_floating_point():
                    value.copy_(.5 + torch.rand(value.shape, generator=g))
        return model.eval()

    def folded(model, wrong=None):
        count = 0
        for block in list(model.modules()):
            convolution, norm = getattr(block, "convolution", None), getattr(block, "normalization", None)
            if convolution is not None and norm is not None:
                if count == wrong:
                    norm.running_var.mul_(1.1)
                block.convolution, block.normalization = nn.utils.fusion.fuse_conv_bn_eval(convolution, norm), nn.Identity()
                count += 1
        return model, count
    image = {"pixel_values": torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))}
    reference = nameless.record(mobilenet(), tmp_path / "reference.h5", image)
    model, count = folded(mobilenet())
    report, red = judged(reference, nameless.record(model, tmp_path / "healthy.h5", image), tmp_path)
    assert count == 52 and report["verdict"] == "pass" and not red, red
    assert sum("it is not compared" in warning for warning in report["warnings"]) == 1, report["warnings"]
    report, red = judged(reference, nameless.record(folded(mobilenet(), wrong=40)[0], tmp_path / "wrong.h5", image), tmp_path)
    assert report["verdict"] == "fail" and len({path.split("/")[0].rsplit(".", 1)[0] for path in red}) == 1, red


def test_a_padded_vocabulary_says_its_map_rule(tmp_path):
    """A shape that differs fails; the rule that the row names makes it green."""
    padded = opt()
    padded.lm_head.weight = nn.Parameter(torch.cat([padded.lm_head.weight.data, torch.zeros(31, 48)]))
    reference, port = record(opt(), tmp_path / "reference.h5"), record(padded, tmp_path / "port.h5")
    report, red = judged(reference, port, tmp_path)
    assert {row["verdict"] for row in red.values()} == {"shape"} and "lm_head" in red, red
    rules = {row["diagnosis"].split("(--map): ")[1] for row in red.values()}
    assert "lm_head = lm_head slice(2,0,97)" in rules, rules
    (tmp_path / "port.map").write_text("\n".join(sorted(rules)) + "\n")
    report, _ = nameless.compare(reference, port, tmp_path / "report", "--map", str(tmp_path / "port.map"))
    assert report["verdict"] == "pass", report["first_divergence"]


def qwen2():
    config = transformers.Qwen2Config(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, use_cache=False)
    return spread(transformers.Qwen2ForCausalLM(config))


def modules(model, folder):
    """{path: result of each module} of a run."""
    results = nameless.boundaries(record(model, folder / "whole.h5"))
    return {path: array for path, _, array in results if not path.startswith("op ")}


def saved(file, values):
    with parity_probe.Writer(file) as writer:
        for path, array in values.items():
            writer.write(path, np.ascontiguousarray(array))
    return file


def side_by_side(values):
    """q and k as ggml and the original Llama have them: the two halves that RoPE rotates together lie side by side."""
    return {path: array.reshape(*array.shape[:-1], -1, 2, 6).swapaxes(-1, -2).reshape(array.shape) if path.endswith(("q_proj", "k_proj")) else array
            for path, array in values.items()}


@pytest.mark.parametrize("mapped", [False, True])
def test_rotated_pairs_side_by_side(mapped, tmp_path):
    """An order of channels that q and k share. Under names of a map, too: one of them alone means nothing."""
    reference, values = record(qwen2(), tmp_path / "reference.h5"), side_by_side(modules(qwen2(), tmp_path))
    rule = ["--map", str(tmp_path / "port.map")] if mapped else []
    if mapped:
        (tmp_path / "port.map").write_text("model.layers.*.self_attn.q_proj = blk.*.attn_q\n")
        values = {re.sub(r"model\.layers\.(\d)\.self_attn\.q_proj", r"blk.\1.attn_q", path): array for path, array in values.items()}
    report, _ = nameless.compare(reference, saved(tmp_path / "port.h5", values), tmp_path / "report", *rule)
    assert report["verdict"] == "pass", report["first_divergence"]
    assert any("slices of axis 2 in another order" in warning and "not compared" in warning for warning in report["warnings"]), report["warnings"]


def test_rotated_pairs_that_the_port_does_not_know_of(tmp_path):
    """The weights of one convention under the rotation of the other, as a converter's slip leaves them."""
    port = qwen2()
    for layer in port.model.layers:
        for product in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            for weight in (product.weight, product.bias):
                weight.data = weight.data.unflatten(0, (-1, 2, 6)).transpose(1, 2).reshape(weight.shape).contiguous()
    report, red = judged(record(qwen2(), tmp_path / "reference.h5"), record(port, tmp_path / "port.h5"), tmp_path)
    assert report["first_divergence"]["path"].startswith("model.layers.0.self_attn.q_proj") and "channel order" in report["first_divergence"]["diagnosis"], red


def test_heads_in_another_order_that_the_product_behind_them_knows(tmp_path):
    values = {path: array.reshape(2, 11, -1, 12)[:, :, ::-1].reshape(array.shape) if path.endswith("v_proj") else array for path, array in modules(opt(), tmp_path).items()}
    report, red = judged(record(opt(), tmp_path / "reference.h5"), saved(tmp_path / "port.h5", values), tmp_path)
    assert report["verdict"] == "pass" and any("12 at a time" in warning for warning in report["warnings"]), red


def test_heads_as_an_axis_of_their_own(tmp_path):
    """[batch, tokens, heads, features] and [batch, heads, tokens, features]: four axes are a matter of taste."""
    reference, plain = record(opt(), tmp_path / "reference.h5"), modules(opt(), tmp_path)
    for axes in ((0, 1, 2, 3), (0, 2, 1, 3)):
        values = {path: array.reshape(2, 11, 4, 12).transpose(axes) if path.endswith(("q_proj", "k_proj", "v_proj")) else array for path, array in plain.items()}
        report, red = judged(reference, saved(tmp_path / "port.h5", values), tmp_path)
        assert report["verdict"] == "pass" and not red, red
