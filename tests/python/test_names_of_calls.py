"""A port's own names, learned where a prompt is right, hold for the tokens that it generates, whose shapes are others."""
import nameless
import pytest
from spread_models import gpt2, granite
from test_chunks import run_in_chunks

CHUNKS = (7, 1, 1)


def recorded(make, folder, layout, **fault):
    """Reference, port, and the path of each of its names; of the port each module's results under a number that all its calls have."""
    reference, port = run_in_chunks(make(), folder / "reference.h5", CHUNKS), run_in_chunks(make(), folder / "port.h5", CHUNKS, **fault)
    paths = nameless.rewrite(port, folder / "candidate.h5", nameless.numbered(), lambda path: not path.startswith("op "), lambda path, array: layout(array))
    return reference, folder / "candidate.h5", paths


LAYOUTS = {"as it is": lambda array: array, "without the batch": lambda array: array[0] if len(array) == 1 else array, "tokens first": lambda array: array.swapaxes(0, 1) if array.ndim == 3 else array}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_that_are_late_behind_the_prompt(layout, tmp_path):
    """What the port looks up in its first call behind the prompt is, to the last bit, what the reference looks up in the next."""
    reference, port, paths = recorded(gpt2, tmp_path, LAYOUTS[layout], late=1)
    report, rows = nameless.compare(reference, port, tmp_path / "report")
    first = report["first_divergence"]
    assert (first["path"], first["call"]) == ("transformer.wpe", 1), first
    wrong = {(op["candidate_path"], op["path"], op["call"]) for op in report["ops"] if op.get("candidate_path") and not op["path"].startswith(paths[op["candidate_path"]])
             and not op["path"].endswith("drop")}
    assert not wrong, wrong


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [granite, gpt2])
def test_a_right_port_has_nothing_red(make, layout, tmp_path):
    report, _ = nameless.compare(*recorded(make, tmp_path, LAYOUTS[layout])[:2], tmp_path / "report")
    assert not report["first_divergence"] and not report["counts"]["fail"] + report["counts"]["shape"], report["counts"]


def test_late_positions_of_a_single_token_are_named(tmp_path):
    """Positions by frequencies are no learned gain: one position more was named `one plus forgotten`. The port recorded no angles."""
    reference, port = run_in_chunks(granite(), tmp_path / "reference.h5", CHUNKS), run_in_chunks(granite(), tmp_path / "port.h5", CHUNKS, late=1)
    nameless.rewrite(port, tmp_path / "candidate.h5", lambda _, path: path, lambda path: path.endswith(("o_proj", "lm_head")), lambda path, array: array)
    report, _ = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    first = report["first_divergence"]
    assert (first["path"], first["call"]) == ("model.layers.0.self_attn.o_proj", 1), first
    assert first["diagnosis"].startswith("position off by one (positions + 1 at model.rotary_emb/"), first["diagnosis"]


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_the_logits_of_each_call_are_compared(wrong, alone, tmp_path):
    """Logits that are scaled have no content in common: as many of their size are left as there are calls. They were left out, and the report said that no op is wrong."""
    reference, port = run_in_chunks(gpt2(), tmp_path / "reference.h5", CHUNKS), run_in_chunks(gpt2(), tmp_path / "port.h5", CHUNKS)
    nameless.rewrite(port, tmp_path / "candidate.h5", nameless.numbered(), lambda path: path == "lm_head" or not (alone or path == "" or path.startswith("op ")),
                     lambda path, array: array / 8 if wrong and path == "lm_head" else array)
    report, _ = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert report["verdict"] == ("fail" if wrong else "pass"), report["counts"]
    assert [op["call"] for op in report["ops"] if op["verdict"] == "fail"] == ([0, 1, 2] if wrong else []), report["counts"]
