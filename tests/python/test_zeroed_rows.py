"""Padding that the port leaves at zero: attention over sequences of several lengths takes the tokens out of the batch and puts them back among zeros."""
import parity_probe
import pytest
import torch
from spread_models import gpt2, judged, saved
from test_padding import DTYPES, qwen3
from test_ragged_batch import LENGTHS, module_results, one_batch, prompts, record


def batch(in_front=False, lengths=LENGTHS):
    return one_batch(prompts(lengths), in_front)


def zeroed(model, mask):
    """Its attention returns zeros for what this mask leaves out."""
    for layer in model.model.layers:
        layer.self_attn.o_proj.register_forward_pre_hook(lambda module, inputs: (inputs[0] * mask[..., None].to(inputs[0].dtype),))
    return model


def both(folder, mask=None, dtype=torch.float32, in_front=False, lengths=LENGTHS, fault=lambda m: m, own=False):
    """(reference, port): the port as modules' results alone."""
    arguments = batch(in_front, lengths)
    reference = record(qwen3().to(dtype), folder / "reference.h5", [arguments])
    model, port = zeroed(fault(qwen3().to(dtype)), arguments["attention_mask"] if mask is None else mask), folder / "port.h5"
    with torch.no_grad(), parity_probe.record(model, port, level="module"):
        model(**arguments)
    return reference, saved(folder / "own.h5", {f"t{i}": value for i, (_, value) in enumerate(module_results(port))}) if own else port


def said(report, samples=len(LENGTHS)):
    return any(f"one side leaves the padding of {samples} samples" in warning for warning in report["warnings"])


@pytest.mark.parametrize("lengths", [LENGTHS, [7]], ids=["a batch", "one sample"])
def test_tokens_alone_are_compared(lengths, tmp_path):
    report, red = judged(*both(tmp_path, lengths=lengths), tmp_path)
    assert report["verdict"] == "pass" and said(report, len(lengths)), (red, report["warnings"])
    of_modules = [op["shape"] for op in report["ops"] if op["path"].endswith("_proj")]
    assert len(of_modules) == 3 * 7 and {shape[1] for shape in of_modules} == {sum(lengths)}, of_modules


def test_rows_without_a_token_are_zero_on_both_sides(tmp_path):
    """In front of causal tokens is no token to see: the reference has zeros itself, and nothing is left out."""
    report, red = judged(*both(tmp_path, in_front=True), tmp_path)
    assert report["verdict"] == "pass" and not said(report), (red, report["warnings"])


def test_under_names_of_its_own(tmp_path):
    report, red = judged(*both(tmp_path, own=True), tmp_path)
    assert report["verdict"] == "pass" and said(report) and report["counts"]["pass"] > 25, (red, report["warnings"], report["counts"])


def test_a_token_that_is_zeroed_is_a_fault(tmp_path):
    mask = batch()["attention_mask"].clone()
    mask[1, LENGTHS[1] - 1] = 0
    report, red = judged(*both(tmp_path, mask), tmp_path)
    assert report["first_divergence"]["path"].startswith("model.layers.0.self_attn"), report["first_divergence"]


def test_padding_that_is_anything_else_is_a_fault(tmp_path):
    mask = batch()["attention_mask"] + (1 - batch()["attention_mask"]) * .5
    report, red = judged(*both(tmp_path, mask), tmp_path)
    assert not said(report) and report["first_divergence"]["path"].startswith("model.layers.0.self_attn"), report["warnings"]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_faults_are_found_at_their_module(dtype, tmp_path):
    def other_eps(model):
        model.model.layers[1].post_attention_layernorm.variance_epsilon = .05
        return model
    report, _ = judged(*both(tmp_path, dtype=dtype, fault=other_eps), tmp_path)
    assert report["first_divergence"]["path"] == "model.layers.1.post_attention_layernorm", report["first_divergence"]


@pytest.mark.parametrize("who", ["reference", "port"])
def test_a_bias_is_all_that_zeros_leave(who, tmp_path):
    """Behind attention's projection padding is one row again and again, on either side."""
    arguments, files = batch(), []
    for side in ("reference", "port"):
        model, file = gpt2(), tmp_path / f"{side}.h5"
        if side == who:
            for layer in model.transformer.h:
                layer.attn.c_proj.register_forward_pre_hook(lambda module, inputs: (inputs[0] * arguments["attention_mask"][..., None],))
        with torch.no_grad(), parity_probe.record(model, file, level="op" if side == "reference" else "module"):
            model(**arguments)
        files.append(file)
    report, red = judged(*files, tmp_path)
    assert report["verdict"] == "pass" and said(report), (red, report["warnings"])
