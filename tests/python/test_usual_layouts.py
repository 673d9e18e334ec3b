"""Channels last where shapes do not tell: maps as wide as high, and as many channels. What holds the reference's value shows how it is read; what does not is read as the others are."""
import diffusers
import nameless
import numpy as np
import pytest
import spread_models
import torch
from spread_models import judged, spread

SIZE = 16


def vae():
    return spread_models.vae(channels=(SIZE, 2 * SIZE), groups=4, size=SIZE)


def record(model, file):
    return nameless.record(model, file, {"sample": torch.randn(1, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(5))})


def channels_last(path, array):
    return np.moveaxis(array, 1, -1) if array.ndim == 4 else array


def port(change, folder, name):
    """The modules' results; {name: path}."""
    model = vae()
    change(model)
    recording = record(model, folder / "port.h5")
    return nameless.rewrite(recording, folder / "candidate.h5", name, lambda path: not path.startswith("op "), channels_last)


def named(_, path):
    return path


def numbered(number, _):
    return f"t{number}"


def flipped(model):
    """The kernel the wrong way round."""
    weight = model.encoder.down_blocks[0].resnets[0].conv1.weight
    weight.data = weight.data.flip(2, 3)


@pytest.mark.parametrize("name", [named, numbered])
def test_a_right_port_is_green(name, tmp_path):
    reference = record(vae(), tmp_path / "reference.h5")
    truth = port(lambda _: None, tmp_path, name)
    report, red = judged(reference, tmp_path / "candidate.h5", tmp_path)
    assert report["verdict"] == "pass" and report["counts"]["pass"] >= len(truth), red


@pytest.mark.parametrize("name", [named, numbered])
def test_a_wrong_value_is_read_as_the_others_are(name, tmp_path):
    reference = record(vae(), tmp_path / "reference.h5")
    truth = port(flipped, tmp_path, name)
    report, red = judged(reference, tmp_path / "candidate.h5", tmp_path)
    assert {path.split("/")[0] for path in red} == {"encoder.down_blocks.0.resnets.0.conv1"}, (report["first_divergence"], red.keys())
    assert "axes" not in report["first_divergence"]["diagnosis"], report["first_divergence"]


def frames_last(path, array):
    """As engines hold video: frames are samples, channels the last axis."""
    return array[0].transpose(1, 2, 3, 0) if array.ndim == 5 else channels_last(path, array)


@pytest.mark.parametrize("options", [(), ("--map", "names.map")], ids=["names", "map without steps"])
@pytest.mark.parametrize("factor, wrong", [(1, set()), (-1, {"up_blocks.0.resnets.0.conv1"})], ids=["right", "wrong"])
def test_frames_that_are_samples_on_one_side_and_an_axis_on_the_other(factor, wrong, options, tmp_path, monkeypatch):
    def decoder():
        return spread(diffusers.AutoencoderKLAllegro(down_block_types=("AllegroDownBlock3D",) * 2, up_block_types=("AllegroUpBlock3D",) * 2, block_out_channels=(8, SIZE), layers_per_block=1,
                                                     norm_num_groups=4, temporal_downsample_blocks=(False, False), temporal_upsample_blocks=(False, False), temporal_compression_ratio=1).decoder)

    inputs = {"sample": torch.randn(1, 4, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(6))}
    reference = nameless.record(decoder(), tmp_path / "reference.h5", inputs)
    port = decoder()
    port.up_blocks[0].resnets[0].conv1.weight.data.mul_(factor)
    nameless.rewrite(nameless.record(port, tmp_path / "port.h5", inputs), tmp_path / "candidate.h5", named, lambda path: not path.startswith("op "), frames_last)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.map").write_text("* = *\n")
    report, red = judged(reference, tmp_path / "candidate.h5", tmp_path, *options)
    assert report["counts"]["shape"] == 0 and {path.split("/")[0] for path in red} == wrong, (report["counts"], list(red)[:5])
