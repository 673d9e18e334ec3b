"""Nameless ports whose values have another shape from some module on (a padding, a lost token): the first divergence is there, not where sizes fit again."""
import diffusers
import nameless
import numpy as np
import pytest
import torch
import transformers
from test_pairing_faults import deit

import parity_probe


def vae():
    config = dict(block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, norm_num_groups=4,
                  layers_per_block=1, sample_size=32)
    return diffusers.AutoencoderKL(**config).decoder, {"sample": torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(1))}


def resnet():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24], depths=[1, 2, 1], layer_type="basic")
    return transformers.ResNetForImageClassification(config), {"pixel_values": torch.randn(2, 3, 60, 60, generator=torch.Generator().manual_seed(1))}


def unpadded(path):
    def put(model):
        model.get_submodule(path).padding = (0, 0)
    return put


def without_first_token(path):
    def put(model):
        model.get_submodule(path).register_forward_hook(lambda _, inputs, out: out[:, 1:].clone())
    return put


CASES = {"a convolution after upsampling": (vae, unpadded("up_blocks.0.upsamplers.0.conv"), "up_blocks.0.upsamplers.0.conv"),
         "a lost token": (deit, without_first_token("layers.1"), "layers.1"),
         "the stem's pooling": (resnet, lambda model: setattr(model.resnet.embedder.pooler, "padding", 0), "resnet.embedder")}


def modules(path):
    return not path.startswith("op ")


def made(build, put, folder):
    torch.manual_seed(0)
    model, inputs = build()
    model = model.eval()
    reference = nameless.record(model, folder / "reference.h5", inputs)
    put(model)
    return reference, nameless.record(model, folder / "faulty.h5", inputs)


def first_divergence(report):
    """The row itself."""
    first = report["first_divergence"]
    assert first is not None, [(op["path"], op["verdict"]) for op in report["ops"]]
    return next(op for op in report["ops"] if (op["path"], op["call"]) == (first["path"], first["call"]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", ["as PyTorch has it", "channels last"])
def test_the_first_of_another_shape(case, layout, tmp_path):
    build, put, place = CASES[case]
    reference, faulty = made(build, put, tmp_path)

    def channels_last(_, array):
        return np.moveaxis(array, 1, -1) if layout == "channels last" and array.ndim == 4 else array
    nameless.rewrite(faulty, tmp_path / "port.h5", keep=modules, layout=channels_last)
    report, rows = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    first = first_divergence(report)
    assert first["path"].startswith(place) and first["verdict"] == "shape", first
    assert sum(row["verdict"] == "shape" for row in rows.values()) == 1


def test_columns_of_a_convolution_are_no_result(tmp_path):
    """A port that records what its convolutions multiply with, and is wrong later: nothing of another shape is called wrong."""
    wrong = "up_blocks.1.resnets.0.conv1"
    reference, faulty = made(vae, lambda model: model.get_submodule(wrong).weight.data.mul_(1.5), tmp_path)
    with parity_probe.Writer(tmp_path / "port.h5") as writer:
        for number, (path, _, array) in enumerate(value for value in nameless.boundaries(faulty) if modules(value[0])):
            if array.ndim == 4 and "conv" in path:
                padded = np.pad(array, ((0, 0), (0, 0), (1, 1), (0, 1)))
                writer.write(f"columns{number}", padded)
            writer.write(f"t{number}", array)
    report, rows = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    assert first_divergence(report)["path"].startswith(wrong)
    assert not [row for row in rows.values() if row["verdict"] == "shape"]


def test_what_follows_from_another_shape_is_said_to(tmp_path):
    """Under the reference's names: the first value whose size fits again is computed from one that does not, and no change of its ops is looked for."""
    reference, faulty = made(resnet, CASES["the stem's pooling"][1], tmp_path)
    nameless.rewrite(faulty, tmp_path / "port.h5", name=lambda _, path: path, keep=modules)
    report, rows = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    assert first_divergence(report)["path"] == "resnet.embedder.pooler"
    failed = {path: row["diagnosis"] for path, row in rows.items() if row["verdict"] == "fail"}
    assert failed and all("whose shape differs" in diagnosis for diagnosis in failed.values()), failed
    assert not [text for text in report["warnings"] if "not available" in text], report["warnings"]
    assert not [step for step in report["next"] if "weights" in step["command"]]  # the port's file holds none
