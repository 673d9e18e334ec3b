"""Both sides make as many calls, but not in the same order: guidance has none of its own."""
import nameless
import parity_probe
import pytest
import torch
from spread_models import judged
from test_chunks import noise, wan

PROMPTS = [noise(1, 11, 32), 2 * noise(1, 12, 32)[:, 1:] + 1]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
STEPS = (700, 400, 150)


def guided(file, order, dtype=torch.float32, steps=STEPS, fault=lambda m: m, prompts=PROMPTS):
    """A sampler's loop, two calls a step."""
    model, latents, prompts = fault(wan().to(dtype)), noise(1, 4, 3, 6, 8).to(dtype), [prompt.to(dtype) for prompt in prompts]
    with torch.no_grad(), parity_probe.record(model, file):
        for step in steps:
            results = {prompt: model(latents, torch.tensor([step]), prompts[prompt], return_dict=False)[0] for prompt in order}
            latents = latents - .1 * (results[0] + 2 * (results[1] - results[0]))
    return file


# More than eight calls are looked at in pairs alone.
@pytest.mark.parametrize("steps, dtype", [(STEPS[:1], torch.bfloat16), (STEPS[:2], torch.float32), (STEPS + STEPS[1:], torch.float32)], ids=["one step, bf16", "two steps", "five steps"])
def test_the_negative_prompt_first(steps, dtype, tmp_path):
    report, red = judged(guided(tmp_path / "reference.h5", (0, 1), dtype, steps), guided(tmp_path / "port.h5", (1, 0), dtype, steps), tmp_path)
    assert report["verdict"] == "pass", list(red)[:5]
    assert any("in another order than the reference, 1, 0 of 2" in warning for warning in report["warnings"]), report["warnings"]


def test_samples_in_any_order(tmp_path):
    """Four calls of a loop over samples."""
    model, samples = wan(), [(noise(1, 4, 3, 6, 8) + i, torch.tensor([500]), noise(1, 11, 32) * (1 + i)) for i in range(4)]

    def record(file, order):
        with torch.no_grad(), parity_probe.record(model, file):
            for i in order:
                model(*samples[i])
        return file

    report, red = judged(record(tmp_path / "reference.h5", (0, 1, 2, 3)), record(tmp_path / "port.h5", (2, 0, 3, 1)), tmp_path)
    assert report["verdict"] == "pass", list(red)[:5]


def other_eps(model):
    model.blocks[1].norm2.eps = .05
    return model


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_a_fault_is_named_at_its_module(dtype, tmp_path):
    report, red = judged(guided(tmp_path / "reference.h5", (0, 1), dtype, STEPS[:2]), guided(tmp_path / "port.h5", (1, 0), dtype, STEPS[:2], other_eps), tmp_path)
    first = report["first_divergence"]
    assert first["path"].startswith("blocks.1.norm2") and first["call"] == 0 and "norm eps" in first["diagnosis"], (first, list(red)[:5])


def test_one_prompt_for_both_calls_is_found(tmp_path):
    """The usual fault of guidance: nothing tells another order, and the calls are compared as they are."""
    port = guided(tmp_path / "port.h5", (0, 1), steps=STEPS[:2], prompts=PROMPTS[:1] * 2)
    report, red = judged(guided(tmp_path / "reference.h5", (0, 1), steps=STEPS[:2]), port, tmp_path)
    assert report["verdict"] == "fail" and not any("another order" in warning for warning in report["warnings"]), report["warnings"]
    assert {op["call"] for op in report["ops"] if op["verdict"] == "fail"} == {1, 3}, list(red)[:5]
