"""`parity-check bench wan --weights`: the C++ model with weights from published files (safetensors, either naming) is bitwise the model with the recording's weights.

The files are made by diffusers' save_pretrained and by safetensors itself, the recording by parity_probe from the same model.
"""
import json
import os
import sys
from pathlib import Path

import pytest
import program

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
safetensors_torch = pytest.importorskip("safetensors.torch")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import parity_probe  # noqa: E402
from reference_models import recipes  # noqa: E402
from reference_models.weights import spread_weights  # noqa: E402

RECIPES = {r.name: r for r in recipes.RECIPES}
DIFFUSERS = ["diffusers-skyreels-v2-i2v", "diffusers-wan-t2v"]
ORIGINALS = ["skyreels-v2-i2v", "skyreels-v2-df", "wan-i2v"]


def bench(folder, *more):
    return program.run("bench", "wan", "--threads", "2", "--weights", folder, *more)


def agreement(folder, scratch, *more):
    """Shares of bitwise equal output elements, against the recording's own weights and its output."""
    done = bench(folder, "--json", scratch / "bench.json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads((scratch / "bench.json").read_text())


def record(name, precision, path):
    torch.set_num_threads(2)
    model, inputs = recipes.build(RECIPES[name], precision)
    with torch.no_grad(), parity_probe.record(model, str(path), level="module"):
        model(**inputs)
    return model


def save_diffusers(name, folder, dtype=torch.float32, **how):
    recipe = RECIPES[name]
    cls = diffusers.WanTransformer3DModel if recipe.dtype_path == "dwan" else diffusers.SkyReelsV2Transformer3DModel
    spread_weights(cls(**recipe.config), recipe.seed).to(dtype).save_pretrained(folder, **how)


def save_original(model, folder, **config):
    folder.mkdir()
    keep = ("dtype_path", "low")  # the recorder's own; a published config.json has neither
    (folder / "config.json").write_text(json.dumps({k: v for k, v in {**model.config, **config}.items() if k not in keep}))
    safetensors_torch.save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors")


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("name", DIFFUSERS)
def test_shards_of_save_pretrained(tmp_path, name, precision):
    # The bf16 recording's model was itself loaded by from_pretrained(torch_dtype=bf16) from the float32 file.
    save_diffusers(name, tmp_path / "m", torch.float32, max_shard_size="60KB")
    if precision == "fp32":  # the recording's twin holds what bf16 left of the weights
        model = record(name, precision, tmp_path / "ref.h5")
        model.save_pretrained(tmp_path / "m", max_shard_size="60KB")
    else:
        record(name, precision, tmp_path / "ref.h5")
    assert len(list((tmp_path / "m").glob("*.safetensors"))) > 3 and list((tmp_path / "m").glob("*.index.json"))
    found = agreement(tmp_path / "m", tmp_path, "--dtype", precision, "--reference", tmp_path / "ref.h5")
    assert found["agreement"]["own_weights"] == 1
    assert found["agreement"]["recorded"] > 0.97
    assert found["dtype_path"] == RECIPES[name].dtype_path


def test_one_file_of_save_pretrained(tmp_path):
    name = "diffusers-skyreels-v2-df"
    save_diffusers(name, tmp_path / "m")
    record(name, "bf16", tmp_path / "ref.h5")
    (file,) = (tmp_path / "m").glob("*.safetensors")
    for place in (tmp_path / "m", file):
        assert agreement(place, tmp_path, "--reference", tmp_path / "ref.h5")["agreement"]["own_weights"] == 1


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("name", ORIGINALS)
def test_original_names(tmp_path, name, precision):
    model = record(name, precision, tmp_path / "ref.h5")
    save_original(model, tmp_path / "m")
    found = agreement(tmp_path / "m", tmp_path, "--dtype", precision, "--dtype-path", RECIPES[name].dtype_path, "--reference", tmp_path / "ref.h5")
    assert found["agreement"]["own_weights"] == 1
    assert found["agreement"]["recorded"] > 0.97


def test_another_weight_shows(tmp_path):
    name = "skyreels-v2-t2v"
    model = record(name, "bf16", tmp_path / "ref.h5")
    with torch.no_grad():
        dict(model.named_parameters())["blocks.1.ffn.2.weight"].mul_(1.01)
    save_original(model, tmp_path / "m")
    assert agreement(tmp_path / "m", tmp_path, "--reference", tmp_path / "ref.h5")["agreement"]["own_weights"] < 0.9


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """(config, tensors) of a checkpoint in the original naming."""
    model, _ = recipes.build(RECIPES["skyreels-v2-t2v"], "bf16")
    return dict(model.config), {k: v.contiguous() for k, v in model.state_dict().items()}


def damaged(case, config, tensors):
    """Changes one thing; the words that must be said."""
    if case == "missing":
        del tensors["blocks.1.ffn.0.bias"]
        return "lacks 'blocks.1.ffn.0.bias'"
    if case == "many missing":
        config["num_layers"] = 3
        return "lacks 'blocks.2.modulation', 'blocks.2.self_attn.q.weight', 'blocks.2.self_attn.q.bias' and 24 more"
    if case == "extra":
        tensors["blocks.0.lora.weight"] = torch.zeros(2)
        return "holds 'blocks.0.lora.weight'"
    if case == "shape":
        tensors["head.head.weight"] = tensors["head.head.weight"][:-1].contiguous()
        return "tensor 'head.head.weight' is [63, 40], config.json makes it [64, 40]"
    if case == "integers":
        tensors["head.head.bias"] = tensors["head.head.bias"].int()
        return "'head.head.bias' holds no floating-point numbers"
    if case == "another model":
        tensors.clear()
        tensors["h.0.ln_1.weight"] = torch.ones(3)
        return "is not a Wan or SkyReels-V2 transformer"
    if case == "other naming":
        config.clear()
        config.update(RECIPES["diffusers-wan-t2v"].config, _class_name="WanTransformer3DModel")
        return "the tensors carry the originals' names, but config.json is of the other kind"
    assert case == "impossible"
    config["num_heads"] = 3
    return "dim 40 is not a multiple of 3 heads"


@pytest.mark.parametrize("case", ["missing", "many missing", "extra", "shape", "integers", "another model", "other naming", "impossible"])
def test_a_wrong_checkpoint_is_one_line(tmp_path, good, case):
    config, tensors = dict(good[0]), dict(good[1])
    words = damaged(case, config, tensors)
    (tmp_path / "config.json").write_text(json.dumps(config))
    safetensors_torch.save_file(tensors, tmp_path / "model.safetensors")
    done = bench(tmp_path)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("case, words", [("no config", "config.json: cannot be read"), ("no weights", "holds no .safetensors file"), ("two files", "holds both a.safetensors and model.safetensors"),
                                         ("no JSON", "config.json: is not a JSON object"), ("truncated", "truncated")])
def test_a_folder_that_is_no_checkpoint_is_one_line(tmp_path, good, case, words):
    (tmp_path / "config.json").write_text("[" if case == "no JSON" else json.dumps(good[0]))
    safetensors_torch.save_file(good[1], tmp_path / "model.safetensors")
    if case == "no config":
        (tmp_path / "config.json").unlink()
    if case == "no weights":
        (tmp_path / "model.safetensors").unlink()
    if case == "two files":
        (tmp_path / "a.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes())
    if case == "truncated":
        os.truncate(tmp_path / "model.safetensors", 9000)
    done = bench(tmp_path)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_recording_of_another_configuration_is_refused(tmp_path, good):
    config, tensors = good
    (tmp_path / "config.json").write_text(json.dumps(config))
    safetensors_torch.save_file(tensors, tmp_path / "model.safetensors")
    done = bench(tmp_path, "--reference", ROOT / "reference_dumps" / "wan-i2v.bf16.h5")
    assert done.returncode == 2 and "is not a recording of this configuration" in done.stderr
