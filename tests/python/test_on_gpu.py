"""Real models recorded on a GPU: replayed there bit by bit, and held against honest and wrong ports from either device. Needs a GPU and a parity-check whose LibTorch knows it."""
import json
import pathlib
import sys

import killed
import pytest
import torch

import parity_probe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from reference_models.recipes import RECIPES, build  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

# Which module gets another eps; every family, both precisions.
WRONG = {"skyreels-v2-t2v": "blocks.1.self_attn.norm_q", "wan-t2v": "blocks.1.norm3", "diffusers-wan-t2v": "blocks.1.attn2.norm_q",
         "transformers-gpt2": "transformer.h.1.ln_2", "transformers-gpt-oss": "model.layers.1.post_attention_layernorm"}
OTHERWISE = {"fp32": "product inputs: tf32", "bf16": "extra rounding: product before bias"}
CASES = pytest.mark.parametrize("name", WRONG)
PRECISIONS = pytest.mark.parametrize("precision", ["bf16", "fp32"])


def built(name, precision, device):
    model, inputs = build(next(recipe for recipe in RECIPES if recipe.name == name), precision)
    model = model.to(device)
    if torch.is_tensor(getattr(model, "freqs", None)):   # no buffer in the originals: they move it by hand, too
        model.freqs = model.freqs.to(device)
    return model, {key: value.to(device) if torch.is_tensor(value) else value for key, value in inputs.items()}


def record(path, name, precision, device, change=None):
    model, inputs = built(name, precision, device)
    if change:
        change(model)
    with torch.no_grad(), parity_probe.record(model, path):
        model(**inputs)
    return path


def another_eps(name):
    def change(model):
        module = model.get_submodule(WRONG[name])
        module.__dict__["variance_epsilon" if hasattr(module, "variance_epsilon") else "eps"] = .1
    return change


def ask(*arguments):
    status, out, err = killed.ask(*arguments)
    return status, f"exit {status}\n{out}{err}"


@CASES
@PRECISIONS
def test_a_gpu_recording_is_replayed_and_judged_on_the_gpu(name, precision, tmp_path):
    gpu = record(tmp_path / "gpu.h5", name, precision, "cuda")
    status, text = ask("replay", gpu, "--device", "cuda", "--json", tmp_path / "replay.json")
    assert status == 0, text
    assert json.loads((tmp_path / "replay.json").read_text())["same_kernels"]
    status, text = ask("compare", gpu, gpu, "--device", "cuda")
    assert status == 0, text

    cpu = record(tmp_path / "cpu.h5", name, precision, "cpu")   # an honest port to another device
    for device in ("cuda", "cpu"):
        status, text = ask("compare", gpu, cpu, "--device", device)
        in_tf32 = device == "cpu" and precision == "fp32" and "patch_embedding" in text   # which a CPU cannot reproduce
        assert status == (3 if in_tf32 else 0), text
        # What PyTorch itself does otherwise on a GPU is said: convolutions in TF32; in bf16 rounded before their bias is added.
        status, text = ask("compare", cpu, gpu, "--device", device, "--json", tmp_path / "report.json")
        wrong = {row["path"]: row["diagnosis"] for row in json.loads((tmp_path / "report.json").read_text())["ops"] if row["verdict"] != "pass"}
        assert set(wrong) <= {"patch_embedding/convolution.0"} and status == bool(wrong), text
        assert all(OTHERWISE[precision] in diagnosis for diagnosis in wrong.values()), text
        status, text = ask("compare", cpu, gpu, "--device", device, "--accept-path", OTHERWISE[precision])
        assert status == 0, text

    wrong = record(tmp_path / "wrong.h5", name, precision, "cuda", another_eps(name))
    status, text = ask("compare", gpu, wrong, "--device", "cuda", "--json", tmp_path / "wrong.json")
    assert status == 1, text
    assert json.loads((tmp_path / "wrong.json").read_text())["first_divergence"]["path"].startswith(WRONG[name]), text


def test_tf32_is_recorded_and_a_port_without_it_is_judged_by_it(tmp_path):
    matmul = torch.backends.cuda.matmul
    plain = record(tmp_path / "plain.h5", "transformers-gpt2", "fp32", "cuda")
    before, matmul.allow_tf32 = matmul.allow_tf32, True
    try:
        tf32 = record(tmp_path / "tf32.h5", "transformers-gpt2", "fp32", "cuda")
    finally:
        matmul.allow_tf32 = before
    status, text = ask("replay", tf32, "--device", "cuda")   # with the switch that was recorded, whatever this process has
    assert status == 0, text
    for reference, candidate in ((plain, tf32), (tf32, plain)):
        status, text = ask("compare", reference, candidate, "--device", "cuda")
        assert "TF32" in text, text
