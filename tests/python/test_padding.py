"""One side pads its tokens: to a static shape, as ports to XLA and TensorRT do, or to a text encoder's longest, as pipelines do."""
import nameless
import parity_probe
import pytest
import torch
import transformers
from pairwise import pairwise
from spread_models import IDS, channels_last, gpt2, judged, pictures, saved, spread
from test_chunks import umt5

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
PADDING = 5


def qwen3(attention="sdpa"):
    config = transformers.Qwen3Config(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=12, use_cache=False,
                                      attn_implementation=attention)
    return spread(transformers.Qwen3ForCausalLM(config))


def gpt_oss():
    config = transformers.GptOssConfig(vocab_size=97, hidden_size=48, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                                       num_local_experts=4, num_experts_per_tok=2, sliding_window=6, use_cache=False)
    return spread(transformers.GptOssForCausalLM(config))


MODELS = {"GPT-2": gpt2, "Qwen3": qwen3, "Qwen3, eager": lambda: qwen3("eager"), "gpt-oss": gpt_oss, "UMT5": umt5}


def padded(in_front=False):
    """The arguments that real code takes for padded tokens."""
    def beside(tokens, padding):
        return torch.cat([padding, tokens] if in_front else [tokens, padding], 1)
    padding = torch.full((2, PADDING), 3)
    mask = beside(torch.ones_like(IDS), torch.zeros_like(padding))
    positions = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if in_front else {}
    return {"input_ids": beside(IDS, padding), "attention_mask": mask, **positions}


def both(make, folder, who, dtype=torch.float32, in_front=False, fault=lambda m: m, **others):
    """(reference, port), of which `who` pads; `fault`: of the port."""
    files = {}
    for side in ("reference", "port"):
        arguments = {**padded(in_front), **others} if side == who else {"input_ids": IDS}
        files[side] = nameless.record((fault if side == "port" else lambda m: m)(make().to(dtype)), folder / f"{side}.h5", arguments)
    return files["reference"], files["port"]


# UMT5's positions are counted from its first token on.
@pairwise(lambda case: (case.get("name"), case.get("in_front")) != ("UMT5", "in front"),
          name=MODELS, in_front={"behind": False, "in front": True}, who=["port", "reference"], dtype=DTYPES)
def test_padding_is_left_out(name, in_front, who, dtype, tmp_path):
    report, red = judged(*both(name, tmp_path, who, dtype, in_front), tmp_path)
    assert report["verdict"] == "pass", red
    assert any(f"the {who} pads 11 tokens{' in front,' if in_front else ''} to 16" in warning for warning in report["warnings"]), report["warnings"]
    modules = [op for op in report["ops"] if "/" not in op["path"] and len(op["shape"]) == 3]
    assert len(modules) > 10 and all(op["shape"][1] == 11 for op in modules), modules


@pytest.mark.parametrize("who", ["port", "reference"])
@pytest.mark.parametrize("in_front", [False, True], ids=["behind", "in front"])
def test_under_names_of_its_own(in_front, who, tmp_path):
    reference, port = both(qwen3, tmp_path, who, in_front=in_front)
    nameless.rewrite(port, tmp_path / "nameless.h5", keep=lambda path: not path.startswith("op "))
    report, red = judged(reference, tmp_path / "nameless.h5", tmp_path)
    assert report["verdict"] == "pass", red
    assert report["counts"]["pass"] > 25, report["counts"]


def of_modules(file):
    return {path: value for path, _, value in nameless.boundaries(file) if not path.startswith("op ")}


@pytest.mark.parametrize("who", ["port", "reference"])
def test_without_the_axis_of_the_batch(who, tmp_path):
    """An engine's arrays of tokens and features."""
    one = {key: value[:1] for key, value in padded().items()}
    files = [nameless.record(gpt2(), tmp_path / f"{name}.h5", arguments) for name, arguments in (("as it is", {"input_ids": IDS[:1]}), ("padded", one))]
    reference, port = files if who == "port" else files[::-1]
    without = {path: value[0] for path, value in of_modules(port).items() if len(value) == 1}
    report, red = judged(reference, saved(tmp_path / "port.h5", without), tmp_path)
    assert report["verdict"] == "pass", red
    assert report["counts"]["pass"] > 25, report["counts"]


def heads_scaled(model):
    model.model.layers[1].self_attn.scaling *= 1.2
    return model


def other_eps(model):
    model.model.layers[1].post_attention_layernorm.variance_epsilon = .05
    return model


FAULTS = {"scale": (heads_scaled, "model.layers.1.self_attn", "attention scale"), "eps": (other_eps, "model.layers.1.post_attention_layernorm", "norm eps")}


@pytest.mark.parametrize("who", ["port", "reference"])
@pytest.mark.parametrize("fault, place, name, dtype", [(*FAULTS["scale"], torch.bfloat16), (*FAULTS["eps"], torch.float32)], ids=["scale, bf16", "eps, fp32"])
def test_a_fault_is_named_at_its_module(fault, place, name, dtype, who, tmp_path):
    report, red = judged(*both(qwen3, tmp_path, who, dtype, in_front=True, fault=fault), tmp_path)
    first = report["first_divergence"]
    assert first["path"].startswith(place) and name in first["diagnosis"], (first, list(red))


def test_padding_that_is_attended_is_found(tmp_path):
    """The usual fault of a static shape: no mask."""
    report, red = judged(*both(umt5, tmp_path, "port", attention_mask=torch.ones(2, 16, dtype=torch.long)), tmp_path)
    assert report["first_divergence"]["path"].startswith("encoder.block.0.layer.0.SelfAttention"), (report["first_divergence"], list(red))


def test_positions_that_count_the_padding_are_found(tmp_path):
    report, red = judged(*both(gpt2, tmp_path, "port", in_front=True, position_ids=torch.arange(16)[None]), tmp_path)
    assert report["first_divergence"]["path"].startswith("transformer.wpe"), (report["first_divergence"], list(red))


def test_rows_of_another_content_are_no_padding(tmp_path):
    reference, port = both(gpt2, tmp_path, "port")
    turned = {path: value[:, ::-1] if value.ndim == 3 else value for path, value in of_modules(port).items()}
    report, red = judged(reference, saved(tmp_path / "turned.h5", turned), tmp_path)
    assert {op["verdict"] for path, op in red.items() if "/" not in path} == {"shape"}, red


def test_one_more_sample_is_no_padding(tmp_path):
    reference = nameless.record(gpt2(), tmp_path / "reference.h5", {"input_ids": IDS})
    port = nameless.record(gpt2(), tmp_path / "port.h5", {"input_ids": torch.cat([IDS, IDS[:1]])})
    report, red = judged(reference, port, tmp_path)
    assert red["transformer.h.0.mlp"]["verdict"] == "shape", red


@pytest.mark.parametrize("who, lost", [("port", 2), ("reference", 1)])
def test_tokens_that_one_side_lacks_are_no_padding(who, lost, tmp_path):
    files = {side: nameless.record(qwen3(), tmp_path / f"{side}.h5", {"input_ids": IDS if side == who else IDS[:, :-lost]}) for side in ("reference", "port")}
    report, red = judged(files["reference"], files["port"], tmp_path)
    assert red["model.layers.0.mlp"]["verdict"] == "shape", red


def test_one_row_of_padding_that_is_masked(tmp_path):
    arguments = {key: value[:, :12] for key, value in padded().items()}
    reference = nameless.record(qwen3(), tmp_path / "reference.h5", {"input_ids": IDS})
    report, red = judged(reference, nameless.record(qwen3(), tmp_path / "port.h5", arguments), tmp_path)
    assert report["verdict"] == "pass", red


def two_prompts(model, file, lengths, padding):
    """Each prompt in a call of its own, to 11 tokens padded or without: as guidance encodes its two."""
    with torch.no_grad(), parity_probe.record(model, file):
        for ids, length in zip(IDS, lengths):
            mask = (torch.arange(11) < length)[None].long()
            model(**({"input_ids": ids[None] * mask, "attention_mask": mask} if padding else {"input_ids": ids[None, :length]}))
    return file


@pytest.mark.parametrize("who", ["port", "reference"])
@pytest.mark.parametrize("make", [umt5, gpt2], ids=["UMT5", "GPT-2"])
def test_calls_of_several_lengths(make, who, tmp_path):
    lengths = (8, 5)
    report, red = judged(*(two_prompts(make(), tmp_path / f"{side}.h5", lengths, padding=side == who) for side in ("reference", "port")), tmp_path)
    assert report["verdict"] == "pass", red
    assert all(any(f"the {who} pads {length} tokens to 11" in warning for warning in report["warnings"]) for length in lengths), report["warnings"]
    modules = [op for op in report["ops"] if "/" not in op["path"] and len(op["shape"]) == 3]
    assert len(modules) > 10 and {(op["call"] % 2, op["shape"][1]) for op in modules if op["path"].endswith(("layer.1", "mlp"))} == {(0, 8), (1, 5)}


@pytest.mark.parametrize("who", ["port", "reference"])
def test_prompts_of_several_lengths_cut_to_the_longest(who, tmp_path):
    """The mask leaves out more of the other prompts than the padding that one side lacks."""
    calls = padded()
    calls["attention_mask"][0, 8:] = 0
    cut = {key: value[:, :11] for key, value in calls.items()}
    reference, port = (nameless.record(qwen3(), tmp_path / f"{side}.h5", calls if side == who else cut) for side in ("reference", "port"))
    report, red = judged(reference, port, tmp_path)
    assert report["verdict"] == "pass" and any(f"the {who} pads 11 tokens to 16" in warning for warning in report["warnings"]), (red, report["warnings"])


def test_padding_behind_values_that_are_laid_out_otherwise(tmp_path):
    """A static number of tokens, and convolutions' results channels last: those are no padding's, though there are more of them."""
    model, x = pictures(layers=9)
    reference, run = (nameless.record(model, tmp_path / f"{padding}.h5", {"x": x, "padding": padding}) for padding in (0, PADDING))
    nameless.rewrite(run, tmp_path / "port.h5", lambda _, path: path, lambda path: not path.startswith("op "), channels_last)
    report, red = judged(reference, tmp_path / "port.h5", tmp_path)
    assert report["verdict"] == "pass", red
    assert any("the port pads 30 tokens to 35: the 30 are compared, 0 tensors" in warning for warning in report["warnings"]), report["warnings"]
