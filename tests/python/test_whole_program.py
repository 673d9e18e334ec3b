"""No op is wrong and the result still differs: what `compare --max-free` says of a deep model in bf16, and that what it predicts comes true."""
import json

import pytest
import torch
import transformers
from transformers.pytorch_utils import Conv1D

import nameless
import parity_probe
import program
from spread_models import gpt2, record


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """12 layers of GPT-2 in bf16; an honest port (other attention, sums in two halves); the same with a wrong eps in one layer."""
    folder = tmp_path_factory.mktemp("whole")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=12, n_embd=48, n_head=4, vocab_size=97, n_positions=32, use_cache=False, initializer_range=.15)
    model = transformers.GPT2LMHeadModel(config).eval().to(torch.bfloat16)
    ids = torch.randint(0, 97, (2, 24), generator=torch.Generator().manual_seed(1))

    def record(name):
        with torch.no_grad(), parity_probe.record(model, folder / name):
            model(ids)
        return folder / name

    def halves(self, x):
        k = x.shape[-1] // 2
        x, w = x.float(), self.weight.float()
        return ((x[..., :k] @ w[:k] + x[..., k:] @ w[k:]) + self.bias.float()).to(torch.bfloat16)

    reference = record("reference.h5")
    model.set_attn_implementation("eager")
    forward, Conv1D.forward = Conv1D.forward, halves
    try:
        port = record("port.h5")
        model.transformer.h[3].ln_1.eps = .05
        faulty = record("faulty.h5")
    finally:
        Conv1D.forward = forward
    return reference, port, faulty


def compare(reference, candidate, folder, *options):
    done = program.run("compare", reference, candidate, "--out", folder, *options)
    return done, json.loads((folder / "report.json").read_text())


def test_says_that_no_op_is_wrong_and_what_would_help(recordings, tmp_path):
    reference, port, _ = recordings
    done, report = compare(reference, port, tmp_path, "--max-free", "1e-3")
    assert report["first_divergence"] is None, done.stdout
    whole = report["whole_program"]
    last = report["ops"][-1]
    assert last["path"] == "(whole program)" and "no op is wrong" in last["diagnosis"]
    assert last["verdict"] == ("fail" if whole["error"] > whole["valid_error"] else "inconclusive")
    assert done.returncode == (1 if last["verdict"] == "fail" else 3)
    assert whole["error"] > 1e-3 and 1e-3 < whole["valid_error"] < 1 and whole["roundings"] > 12 * 8
    assert "## No op is wrong" in (tmp_path / "report.md").read_text() and "no op is wrong" in done.stdout


def test_what_is_predicted_comes_true(recordings, tmp_path):
    reference, port, _ = recordings
    _, report = compare(reference, port, tmp_path, "--max-free", "1e-3")
    whole = report["whole_program"]
    assert .8 < whole["explained"] <= 1
    assert len(whole["steps"]) == 8 and len({s["path"] for s in whole["steps"]}) == 8
    for step in whole["steps"]:
        assert step["source"].startswith(("modeling_gpt2.py:", "pytorch_utils.py:", "activations.py:")), step
    predicted, replayed = (whole["precision"] - whole["steps"][-1][key] for key in ("predicted", "replayed"))
    assert replayed > .1 * whole["precision"], "eight ops kept wide bring something"
    assert abs(predicted - replayed) < .2 * replayed


def test_nothing_is_said_where_an_op_is_wrong_or_the_result_near_enough(recordings, tmp_path):
    reference, port, faulty = recordings
    done, report = compare(reference, faulty, tmp_path / "faulty", "--max-free", "1e-3")
    assert done.returncode == 1 and report["first_divergence"]["path"].startswith("transformer.h.3.ln_1") and report["whole_program"] is None
    done, report = compare(reference, port, tmp_path / "near", "--max-free", "10")
    assert done.returncode == 0 and report["whole_program"] is None, done.stdout


def test_nonsense_is_refused(recordings, tmp_path):
    reference, port, _ = recordings
    for value in ("nan", "-1", "much"):
        done = program.run("compare", reference, port, f"--max-free={value}")
        assert done.returncode == 2 and "--max-free" in done.stderr and done.stderr.count("\n") <= 2, done.stderr


def test_a_result_under_another_name(tmp_path):
    """The port has `lm_head`, whose value the model returns, and nothing that is called its result."""
    model = gpt2()
    reference = record(model, tmp_path / "reference.h5")
    model.set_attn_implementation("eager")
    nameless.rewrite(record(model, tmp_path / "port.h5"), tmp_path / "named.h5", name=lambda number, path: path, keep=lambda path: not path.startswith("op "))
    done, report = compare(reference, tmp_path / "named.h5", tmp_path, "--max-free", "1e-12")
    assert done.returncode == 3 and report["whole_program"]["error"] > 1e-12, (done.stdout, report["whole_program"])
    done = program.run("blame", reference, tmp_path / "named.h5")
    assert done.returncode == 0 and "final relative L2 error" in done.stdout, done.stderr
