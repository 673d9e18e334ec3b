"""What ports fold into their weights (constants, orders of channels) and how they lay out heads, tokens, a padded vocabulary. Values under equal names are others then, and nothing is wrong."""
import re

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import nameless
import parity_probe
from spread_models import IDS, judged, of_modules, record, saved, spread


DECLARED = ("--accept-path", "folded into weights")


def both(reference, port, folder, *options):
    """The rows that are red as the command stands, each of which must be called folded, and the report and red rows with that declared."""
    report, red = judged(reference, port, folder, *options)
    undeclared = {path: row["diagnosis"] for path, row in red.items() if row["diagnosis"].startswith("folded into weights")}
    if undeclared:
        assert report["verdict"] == "fail" and "--accept-path 'folded into weights'" in report["next"][0]["command"], report["next"]
    return undeclared, *judged(reference, port, folder, *options, *DECLARED)


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


FOLDED = {"scale in the query": (scale_in_the_query, "self_attn.q_proj", "the reference's divided by 3.464"),
          "norm in the product": (norm_in_the_product, "final_layer_norm", "the reference's without a factor and an offset a channel"),
          "ReLU in the product": (relu_in_the_product, "fc1", None)}


@pytest.mark.parametrize("level", ["module", "op"])
@pytest.mark.parametrize("what", FOLDED)
def test_what_a_port_has_folded_into_its_weights(what, level, tmp_path):
    """A value that is another by constants fails under one name and spoils nothing; declared, a fault two values on is the only one."""
    fold, path, value = FOLDED[what]
    reference = record(opt(), tmp_path / "reference.h5")

    def port(model, file):
        with torch.no_grad(), parity_probe.record(model, tmp_path / file, level=level):
            model(input_ids=IDS)
        return tmp_path / file
    undeclared, report, red = both(reference, port(fold(opt()), "healthy.h5"), tmp_path)
    assert report["verdict"] == "pass" and not red, red
    moved = [warning for warning in report["warnings"] if path in warning]   # the reference has that very value elsewhere: behind the scale, behind the ReLU
    assert moved if value is None else moved or undeclared, report["warnings"]
    assert all(path in row and value in said for row, said in undeclared.items()), undeclared
    wrong = fold(opt())
    layers(wrong)[1].fc2.bias.data.zero_()
    _, report, red = both(reference, port(wrong, "wrong.h5"), tmp_path)
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
    return of_modules(nameless.boundaries(record(model, folder / "whole.h5")))


def side_by_side(values):
    """q and k as ggml and the original Llama have them: the two halves that RoPE rotates together lie side by side."""
    return {path: array.reshape(*array.shape[:-1], -1, 2, 6).swapaxes(-1, -2).reshape(array.shape) if path.endswith(("q_proj", "k_proj", "q_norm", "k_norm")) else array
            for path, array in values.items()}


@pytest.mark.parametrize("mapped", [False, True])
def test_rotated_pairs_side_by_side(mapped, tmp_path):
    """An order of channels that q and k share. Under names of a map, too: one of them alone means nothing."""
    reference, values = record(qwen2(), tmp_path / "reference.h5"), side_by_side(modules(qwen2(), tmp_path))
    rule = ["--map", str(tmp_path / "port.map")] if mapped else []
    if mapped:
        (tmp_path / "port.map").write_text("model.layers.*.self_attn.q_proj = blk.*.attn_q\n")
        values = {re.sub(r"model\.layers\.(\d)\.self_attn\.q_proj", r"blk.\1.attn_q", path): array for path, array in values.items()}
    undeclared, report, red = both(reference, saved(tmp_path / "port.h5", values), tmp_path, *rule)
    assert report["verdict"] == "pass" and not red, red
    assert len(undeclared) == 6 and all("slices of axis 2 in another order" in said for said in undeclared.values()), undeclared


def test_rotated_pairs_that_the_port_does_not_know_of(tmp_path):
    """The weights of one convention under the rotation of the other, as a converter's slip leaves them."""
    port = qwen2()
    for layer in port.model.layers:
        for product in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            for weight in (product.weight, product.bias):
                weight.data = weight.data.unflatten(0, (-1, 2, 6)).transpose(1, 2).reshape(weight.shape).contiguous()
    report, red = judged(record(qwen2(), tmp_path / "reference.h5"), record(port, tmp_path / "port.h5"), tmp_path)
    assert report["first_divergence"]["path"].startswith("model.layers.0.self_attn.q_proj") and "channel order" in report["first_divergence"]["diagnosis"], red


def test_rotated_pairs_of_normed_queries_and_keys(tmp_path):
    """Qwen3: the norms of q and k, and their weights, have the channels in that order, too. And attention's scale shared by both norms."""
    config = transformers.Qwen3Config(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12, use_cache=False)
    model = spread(transformers.Qwen3ForCausalLM(config))
    reference, plain = record(model, tmp_path / "reference.h5"), modules(model, tmp_path)
    ports = {"order": side_by_side(plain), "scale": {path: array * 12 ** -.25 if path.endswith(("q_norm", "k_norm")) else array for path, array in plain.items()}}
    for what, values in ports.items():
        undeclared, report, red = both(reference, saved(tmp_path / "port.h5", values), tmp_path)
        assert report["verdict"] == "pass" and not red, (what, red)
        assert len(undeclared) == (8 if what == "order" else 4), (what, undeclared)


def test_a_gain_that_a_norm_takes_back_is_no_fold(tmp_path):
    """OLMo 2 norms what attention gives: the values' weights doubled change nothing behind it, and are wrong."""
    config = transformers.Olmo2Config(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, use_cache=False)
    port = spread(transformers.Olmo2ForCausalLM(config))
    reference = record(port, tmp_path / "reference.h5")
    port.model.layers[1].self_attn.v_proj.weight.data.mul_(2)
    undeclared, report, _ = both(reference, record(port, tmp_path / "port.h5"), tmp_path)
    assert not undeclared and report["verdict"] == "fail" and report["first_divergence"]["path"].startswith("model.layers.1.self_attn.v_proj"), report["first_divergence"]


def test_heads_in_another_order_that_the_product_behind_them_knows(tmp_path):
    values = {path: array.reshape(2, 11, -1, 12)[:, :, ::-1].reshape(array.shape) if path.endswith("v_proj") else array for path, array in modules(opt(), tmp_path).items()}
    undeclared, report, red = both(record(opt(), tmp_path / "reference.h5"), saved(tmp_path / "port.h5", values), tmp_path)
    assert report["verdict"] == "pass" and not red, red
    assert len(undeclared) == 3 and all("12 at a time" in said for said in undeclared.values()), undeclared


def test_heads_as_an_axis_of_their_own(tmp_path):
    """[batch, tokens, heads, features] and [batch, heads, tokens, features]: four axes are a matter of taste."""
    reference, plain = record(opt(), tmp_path / "reference.h5"), modules(opt(), tmp_path)
    for axes in ((0, 1, 2, 3), (0, 2, 1, 3)):
        values = {path: array.reshape(2, 11, 4, 12).transpose(axes) if path.endswith(("q_proj", "k_proj", "v_proj")) else array for path, array in plain.items()}
        report, red = judged(reference, saved(tmp_path / "port.h5", values), tmp_path)
        assert report["verdict"] == "pass" and not red, red


def test_one_rule_for_many_shapes_is_the_next_step(tmp_path):
    """Tokens before the batch, as in Megatron; batch and tokens as one axis, as in ggml; five tokens more, which nothing says to be padding (test_padding.py)."""
    reference, plain = record(qwen2(), tmp_path / "reference.h5"), modules(qwen2(), tmp_path)
    layouts = {"* = * perm(1,0,2)": lambda a: a.swapaxes(0, 1), "* = *": lambda a: a.reshape(-1, a.shape[-1]), "* = * slice(1,0,11)": lambda a: np.pad(a, ((0, 0), (0, 5), (0, 0)), mode="reflect")}
    for rule, layout in layouts.items():
        port = saved(tmp_path / "port.h5", {path: layout(array) for path, array in plain.items()})
        report, red = judged(reference, port, tmp_path)
        assert {row["verdict"] for row in red.values()} == {"shape"}, red
        assert report["next"][0]["command"].startswith(f"echo '{rule}' >layout.map && parity-check compare "), report["next"]
        (tmp_path / "layout.map").write_text(rule + "\n")
        report, _ = nameless.compare(reference, port, tmp_path / "report", "--map", str(tmp_path / "layout.map"))
        assert report["verdict"] == "pass" and not any("layout.map" in step["command"].split("--map")[0] for step in report["next"]), report["first_divergence"]
