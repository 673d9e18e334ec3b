"""weights: layers that the port counts with other numbers (`stage0.1` for `up_blocks.0.resnets.1`) hold what they hold."""
import json

import numpy as np
import pytest

import program

PORT = {"stage": "dec.stage{i}.{k}", "stages": "dec.stages.{i}.{k}", "block": "dec.block_{i}.{k}"}


def weights(exchanged=()):
    """({reference's name: array}, {(i, k, leaf): array}) of two blocks of two layers; `exchanged`: layers of the port whose contents are."""
    rng = np.random.default_rng(0)
    own = {(i, k, leaf): rng.standard_normal(shape).astype(np.float32)
           for i in range(2) for k in range(2) for leaf, shape in {"conv1.weight": (16, 16, 3, 3), "conv1.bias": (16,), "norm2.weight": (16,)}.items()}
    theirs = dict(own)
    for a, b in [exchanged] if exchanged else []:
        for leaf in ("conv1.weight", "conv1.bias", "norm2.weight"):
            theirs[*a, leaf], theirs[*b, leaf] = own[*b, leaf], own[*a, leaf]
    return {f"decoder.up_blocks.{i}.resnets.{k}.{leaf}": array for (i, k, leaf), array in own.items()}, theirs


def audited(folder, form, exchanged=()):
    reference, port = weights(exchanged)
    names = {"conv1.weight": "conv_a.kernel", "conv1.bias": "conv_a.bias", "norm2.weight": "norm_b.scale"}
    np.savez(folder / "reference.npz", **reference)
    np.savez(folder / "port.npz", **{f"{form.format(i=i, k=k)}.{names[leaf]}": array for (i, k, leaf), array in port.items()})
    done = program.run("weights", folder / "reference.npz", folder / "port.npz", "--json", folder / "report.json")
    return done, json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("form", PORT.values(), ids=PORT)
def test_numbers_of_its_own(form, tmp_path):
    done, report = audited(tmp_path, form)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("form", PORT.values(), ids=PORT)
@pytest.mark.parametrize("exchanged", [((0, 0), (0, 1)), ((0, 1), (1, 0))], ids=["in a block", "between blocks"])
def test_exchanged_layers_are_found(form, exchanged, tmp_path):
    done, report = audited(tmp_path, form, exchanged)
    wrong = {op["path"] for op in report["ops"] if op["verdict"] == "fail"}
    assert done.returncode == 1 and {f"decoder.up_blocks.{i}.resnets.{k}.conv1.weight" for i, k in exchanged} <= wrong, wrong
