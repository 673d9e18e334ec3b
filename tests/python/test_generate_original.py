"""`parity-check generate` on a folder in the layout of Wan's original repository (config.json, .safetensors, .pth), beside the same pipeline in diffusers', one file and sharded."""
import json
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import original_layout  # noqa: E402
from test_generate import SIZES, compared, generate, psnr, recorded  # noqa: E402, F401


def config_file(folder, pipeline, settings):
    file = pipeline.parent / f"{pipeline.name}.json"
    file.write_text(json.dumps(dict(pipeline=str(pipeline), settings=settings)))
    return file


@pytest.fixture(scope="module")
def original(recorded, tmp_path_factory):  # noqa: F811
    """(diffusers' folder, frames, the original layout's folder, its JSON file) by kind."""
    made = {}

    def of(kind):
        if kind not in made:
            folder, frames = recorded(kind)
            place = tmp_path_factory.mktemp("original") / kind
            settings = original_layout.write(folder / "pipeline", place)
            made[kind] = folder, frames, place, config_file(folder, place, settings)
        return made[kind]
    return of


@pytest.mark.parametrize("kind", ["t2v", "i2v"])
def test_the_original_layout_gives_the_same_frames(original, kind, tmp_path):
    folder, frames, _, config = original(kind)
    compared(folder, "--dtype", "fp32", "--out", tmp_path / "o.npy", pipeline=config)
    assert generate(folder, "--dtype", "fp32", "-o", tmp_path / "d.npy").returncode == 0
    ours = np.load(tmp_path / "o.npy")
    assert psnr(frames, ours) >= 80
    assert psnr(np.load(tmp_path / "d.npy"), ours) >= 100   # the two transformers multiply the same weights, in their own cast placements


def test_shards(recorded, tmp_path):  # noqa: F811
    import diffusers
    import shutil
    import transformers
    folder, _ = recorded("t2v")
    shutil.copytree(folder / "pipeline", tmp_path / "pipeline")
    for stage, cls, size in (("transformer", diffusers.WanTransformer3DModel, "60KB"), ("vae", diffusers.AutoencoderKLWan, "20KB"), ("text_encoder", transformers.UMT5EncoderModel, "10KB")):
        shutil.rmtree(tmp_path / "pipeline" / stage)
        cls.from_pretrained(folder / "pipeline" / stage).save_pretrained(tmp_path / "pipeline" / stage, max_shard_size=size)
        assert len(list((tmp_path / "pipeline" / stage).glob("*.safetensors"))) > 1, stage
    assert generate(folder, "--dtype", "fp32", "-o", tmp_path / "whole.npy").returncode == 0
    done = generate(folder, "--dtype", "fp32", "-o", tmp_path / "shards.npy", pipeline=tmp_path / "pipeline")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "whole.npy"), np.load(tmp_path / "shards.npy"))


class Shell:
    def __reduce__(self):
        return os.system, (f"touch {self.trace}",)


def damage(case, place, trace):
    """Changes one file; the words that must be said."""
    file = next(place.glob({"vae": "Wan2.1_VAE.pth", "t5": "models_t5_*", "clip": "models_clip_*"}[case.split()[0]]))
    tensors = torch.load(file)
    if case.endswith("list"):
        del tensors["decoder.conv1.weight"], tensors["decoder.middle.0.residual.2.bias"]
        tensors["decoder.head.2.bias"] = torch.zeros(5)
        tensors["extra.weight"] = torch.zeros(1)
        says = ["tensor 'decoder.head.2.bias' is [5], its configuration makes it [3]", "lacks 'decoder.conv1.weight', 'decoder.middle.0.residual.2.bias'", "holds 'extra.weight'"]
    elif case.endswith("lacks"):
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(("token_embedding", "visual.pos_embedding"))}
        says = ["lacks 'token_embedding.weight'" if "t5" in case else "lacks 'visual.pos_embedding'"]
    elif case.endswith("hostile"):
        shell = Shell()
        shell.trace = trace
        tensors, says = {**tensors, "x": shell}, ["system"]
    else:
        file.write_bytes(file.read_bytes()[:-200])
        return [file.name]
    torch.save(tensors, file)
    return says


@pytest.mark.parametrize("case", ["vae list", "t5 lacks", "clip lacks", "vae hostile", "t5 truncated"])
def test_a_wrong_original_is_one_line(original, case, tmp_path):
    import shutil
    folder, _, place, config = original("i2v")
    copy = tmp_path / "copy"
    shutil.copytree(place, copy)
    trace = tmp_path / "trace"
    says = damage(case, copy, trace)
    done = generate(folder, "--dtype", "fp32", pipeline=config_file(folder, copy, json.loads(config.read_text())["settings"]))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and all(words in done.stderr for words in says), done.stderr
    assert not trace.exists()


def test_what_only_the_code_of_the_originals_says_is_asked_for(original):
    folder, _, place, _ = original("t2v")
    done = generate(folder, "--dtype", "fp32", pipeline=place)
    assert done.returncode == 2 and "latents_mean" in done.stderr and done.stderr.count("\n") == 1, done.stderr
