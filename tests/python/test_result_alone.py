"""A port that has its result alone, or its layers', under names and in an order of axes of its own, and is wrong: it is judged by that, whatever the fault has left of the content."""
import re

import nameless
import numpy as np
import pytest
import test_pairing_faults
import torch
from spread_models import pictures
from test_chunks import noise, wan
from test_pairing_faults import gpt2, llama

IDS = torch.randint(0, 97, (2, 12), generator=torch.Generator().manual_seed(1))
LAYOUTS = {"tokens first": lambda array: array.transpose(1, 0, 2), "batch and tokens as one": lambda array: array.reshape(-1, array.shape[-1]),
           "tokens first, as one": lambda array: array.transpose(1, 0, 2).reshape(-1, array.shape[-1])}


def down(model):
    return model.model.layers[0].mlp.down_proj if hasattr(model, "model") else model.transformer.h[0].mlp.c_proj


def judged(make, scale, folder, keep, layout):
    def scaled(model):
        down(model).weight.data *= scale
    return test_pairing_faults.judged(lambda: (make()[0], {"input_ids": IDS}), scaled, folder, keep, name=lambda number, path: "_".join(["out", *re.findall(r"\d+", path)]),
                                      layout=lambda path, array: layout(array))


@pytest.mark.parametrize("make, layout, scale", [*((gpt2, layout, 1) for layout in LAYOUTS), (gpt2, "tokens first", 1.5), (llama, "tokens first, as one", 1.5)])  # wrong: 10 s each
def test_logits_alone(make, layout, scale, tmp_path):
    report, truth, rows = judged(make, scale, tmp_path, lambda path: path == "lm_head", LAYOUTS[layout])
    assert list(truth) == ["out"] and report["verdict"] == ("pass" if scale == 1 else "fail"), report["verdict"]
    off = next(iter(rows.values()))["forced"]["rel_l2"]  # of another order of tokens it would be 1.4
    assert off < 1e-5 if scale == 1 else .01 < off < .9, off


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layers_behind_a_fault_in_the_first(layout, tmp_path):
    report, truth, rows = judged(llama, 1.5, tmp_path, lambda path: re.fullmatch(r"model\.layers\.\d+", path), LAYOUTS[layout])
    assert {name: rows[name]["path"] for name in rows} == truth, set(truth) - set(rows)
    assert [op["path"] for op in report["ops"] if op["verdict"] == "fail"] == ["model.layers.0"]


def test_two_of_its_size_are_not_guessed(tmp_path):
    """Noise beside it: which of the two is the result is not known."""
    torch.manual_seed(0)
    reference = nameless.record(gpt2()[0].eval(), tmp_path / "reference.h5", {"input_ids": IDS})
    g = torch.Generator().manual_seed(2)
    with nameless.parity_probe.Writer(tmp_path / "candidate.h5") as writer:
        for name in ("a", "b"):
            writer.write(name, torch.randn(24, 97, generator=g).numpy())
    report, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert report["verdict"] == "inconclusive" and not rows, rows


def test_blocks_of_more_modules_than_a_trial_follows(tmp_path):
    """What each block returns, behind a wrong embedding: Wan's blocks hold 21 modules, and nothing before the first one's result says where the embedding belongs."""
    def other_embedding(model):
        model.patch_embedding.weight.data *= 1.4

    inputs = {"hidden_states": noise(1, 4, 3, 6, 8), "timestep": torch.tensor([700]), "encoder_hidden_states": noise(1, 11, 32)}
    report, _, rows = test_pairing_faults.judged(lambda: (wan(), inputs), other_embedding, tmp_path, lambda path: path in ("patch_embedding", "blocks.0", "blocks.1"))
    assert report["first_divergence"]["path"] == "patch_embedding" and [row["path"] for row in rows.values()] == ["patch_embedding", "blocks.0", "blocks.1"], rows.keys()


def test_a_wrong_result_that_is_written_twice(tmp_path):
    """Under the name of its module and under its own, both the port's."""
    model, x = pictures()
    reference = nameless.record(model, tmp_path / "reference.h5", {"x": x})
    with torch.no_grad():
        model.head.bias.zero_()
    run = nameless.record(model, tmp_path / "run.h5", {"x": x})
    with nameless.parity_probe.Writer(tmp_path / "port.h5") as port:
        for number, (path, _, value) in enumerate(nameless.boundaries(run)):
            if not path.startswith("op "):
                port.write(f"t{number}", np.ascontiguousarray(value))
        port.write("logits", np.ascontiguousarray(value))
    report, _ = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    first = report["first_divergence"]
    assert report["verdict"] == "fail" and first["path"].startswith("head") and "missing bias" in first["diagnosis"], first
