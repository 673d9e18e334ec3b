"""A prompt in chunks, and then tokens one by one, beside a reference that ran the prompt at once: as many calls for a token, several for the prompt."""
import nameless
import numpy as np
import parity_probe
import pytest
import torch
from pairwise import pairwise
from spread_models import gpt2, granite
from test_chunks import guided, run_in_chunks, under_own_names, wan

GENERATED = (8, 1, 1, 1)
CHUNKS = {"halves": (4, 4, 1, 1, 1), "uneven": (5, 3, 1, 1, 1), "all but one": (7, 1, 1, 1, 1), "tokens": (1,) * 11}


@pairwise(chunks=CHUNKS, model={"GPT-2": gpt2, "Granite": granite}, own_names={"its names": False, "names of its own": True})
def test_a_prompt_in_chunks_before_generated_tokens(chunks, model, own_names, tmp_path):
    reference = run_in_chunks(model(), tmp_path / "reference.h5", GENERATED)
    port = run_in_chunks(model(), tmp_path / "port.h5", chunks)
    if own_names:
        port = under_own_names(port, tmp_path / "own.h5")
    report, _ = nameless.compare(reference, port, tmp_path / "report")
    bad = [(op["path"], op["call"], op["verdict"]) for op in report["ops"] if op["verdict"] not in ("pass", "missing" if own_names else "pass")]
    assert not bad and report["first_divergence"] is None, bad[:3]
    passed = [[op for op in report["ops"] if op["verdict"] == "pass" and op["call"] == call] for call in range(len(GENERATED))]
    assert min(map(len, passed)) >= 20, [len(rows) for rows in passed]
    ran = len(chunks) - len(GENERATED) + 1
    assert any(f"the port ran in {ran} chunks" in warning for warning in report["warnings"]), report["warnings"]


@pytest.mark.parametrize("late, call, worst", [(1, 0, 5)])
def test_a_fault_of_the_second_chunk(late, call, worst, tmp_path):
    reference = run_in_chunks(gpt2(), tmp_path / "reference.h5", GENERATED)
    report, _ = nameless.compare(reference, run_in_chunks(gpt2(), tmp_path / "port.h5", (5, 3, 1, 1, 1), late), tmp_path / "report")
    first = report["first_divergence"]
    assert first["path"].startswith("transformer.wpe") and first["call"] == call, first
    index = next(op for op in report["ops"] if op["path"] == first["path"] and op["call"] == call)["forced"]["worst_index"]
    assert index[1] >= worst, index


def test_values_of_both_names_that_are_only_laid_out_otherwise_are_no_chunks(tmp_path):
    """Guidance in two calls under names of the port's own; its latents, channels last and without their batch, have the reference's name."""
    model = wan()
    reference, kept = tmp_path / "reference.h5", []
    guided(model, reference, batch=True, seen=lambda x: kept.append(parity_probe.point("latents", x)))
    named = guided(model, tmp_path / "named.h5", batch=False)
    with parity_probe.Writer(tmp_path / "port.h5") as writer:
        number = nameless.numbered()
        for path, _, array in nameless.boundaries(named):
            if not path.startswith("op "):
                writer.write(number(None, path), np.ascontiguousarray(array))
        for x in kept:
            writer.write("latents", np.ascontiguousarray(np.moveaxis(x.numpy()[0], 0, -1)))
    report, _ = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    rows = [op for op in report["ops"] if op["path"] == "latents"]
    assert [(op["verdict"], op["candidate_path"]) for op in rows] == [("pass", "latents")] * 2, rows
