"""One model as a port of another, both by other people: Wan's original module names against diffusers' classes with the
same weights, in both directions, without a map.

The two round at other places, listed below. `compare` has to pair them, to find exactly those places,
and to call each by its name; every other module has to pass.
"""
import json
import re
import sys
from pathlib import Path

import pytest
import program

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import parity_probe  # noqa: E402
import test_reference_models as models  # noqa: E402
from pairwise import pairwise  # noqa: E402

BF16, F32 = models.BF16, models.F32

# Where the original and diffusers round differently in bf16, by the original's module names (T2V and I2V together).
# Time embedding: diffusers computes the projection in bf16. Block: qk norms are rounded by diffusers, the residual stream
# is rounded after every addition by diffusers and never (Wan) or at the block's end (SkyReels) by the original.
BOTH = [r"time_projection(\.[01])?", r"img_emb(\.proj(\.[04])?)?", r"blocks\.\d+\.(self|cross)_attn\.norm_[qk](_img)?",
        r"blocks\.\d+\.norm[23]", r"blocks\.\d+", r"head", ""]
ONLY = {"sky_ac": [r"time_embedding\.0"],                      # the sinusoid is rounded to bf16 before it
        "wan": [r"/_to_copy\.2", r"time_embedding\.0", r"blocks\.\d+\.norm1"]}  # sinusoid in fp64; norm1 cast back to x
# Rows that differ whatever the inputs: the check that none of them is overlooked.
ALWAYS = {r"time_projection", r"blocks\.\d+\.self_attn\.norm_q", r"blocks\.\d+\.cross_attn\.norm_k", r"blocks\.\d+",
          "head", ""}


def record(folder, path, model_type, low):
    """(original, diffusers): two recordings of level module with equal weights and inputs."""
    original = models.model(path, low=low, model_type=model_type)
    given = models.inputs(original.config, batch=1)
    twin, other = models.diffusers_twin(original), dict(given)
    if low is BF16:  # loaded the way users load them: some modules stay in fp32
        twin.save_pretrained(folder / "twin")
        twin = type(twin).from_pretrained(folder / "twin", torch_dtype=BF16).eval()
        other.update({k: other[k].to(BF16) for k in ("x", "y", "context", "clip_fea") if k in other})
    files = folder / "original.h5", folder / "diffusers.h5"
    with parity_probe.record(original, files[0], level="module"):
        models.run(original, given)
    with parity_probe.record(twin, files[1], level="module"):
        models.run_diffusers(twin, other)
    return files


def compare(reference, candidate, out):
    done = program.run("compare", reference, candidate, "--json", out, "--quiet")
    assert done.returncode in (0, 1, 3), done.stderr
    return json.loads(out.read_text())


def original_path(row, reference):
    return row["path"] if reference == "original" else row["candidate_path"]


def diverging(report, reference):
    return {original_path(r, reference): r for r in report["ops"] if r["verdict"] != "pass"}


def matches(path, patterns):
    return any(re.fullmatch(p, re.sub(r"\[\d+\]$", "", path)) for p in patterns)


@pairwise(run={"fp32, i2v": (F32, "i2v"), "bf16, t2v": (BF16, "t2v"), "bf16, i2v": (BF16, "i2v")}, path=["sky_ac", "wan"], reference=["original", "diffusers"])
def test_only_the_known_roundings_differ(run, path, reference, tmp_path):
    low, model_type = run
    original, twin = record(tmp_path, path, model_type, low)
    sides = (original, twin) if reference == "original" else (twin, original)
    report = compare(*sides, tmp_path / "report.json")

    coverage = report["coverage"][""]
    left = [name for name in coverage["unmatched_candidates"] if not name.startswith("rope")]  # tables: one side has none
    assert coverage["paired"] / (coverage["paired"] + len(left)) >= .95, left
    assert coverage["uncovered"] == 0, coverage["uncovered_paths"]

    found = diverging(report, reference)
    if low is F32:  # one difference: Wan's sinusoid in fp64 against diffusers' in fp32
        allowed = [r"/_to_copy\.2"] if path == "wan" and reference == "original" else []
        assert [p for p in found if not matches(p, allowed)] == []
    else:
        allowed = BOTH + ONLY[path]
        assert [p for p in found if not matches(p, allowed)] == []
        overlooked = [p for p in ALWAYS if not any(re.fullmatch(p, f) for f in found)]
        assert overlooked == []
    for where, row in found.items():
        assert row["gate"] == "dtype_path", (where, row["diagnosis"])
        assert re.match("(extra|missing) rounding", row["diagnosis"]), (where, row["diagnosis"])


def test_another_configuration_of_the_same_class_is_not_trusted(tmp_path):
    given = models.inputs(models.model().config)
    for name, rope_len in (("reference", 32), ("same", 32), ("other", 40)):
        model = models.model(rope_len=rope_len)
        with parity_probe.record(model, tmp_path / f"{name}.h5", level="module"):
            models.run(model, given)
    same = compare(tmp_path / "reference.h5", tmp_path / "same.h5", tmp_path / "same.json")
    assert same["verdict"] == "pass"
    other = compare(tmp_path / "reference.h5", tmp_path / "other.h5", tmp_path / "other.json")
    assert other["verdict"] == "inconclusive" and other["counts"]["untrusted"] >= 1
    row = next(r for r in other["ops"] if r["path"] == "(configuration)")
    assert "rope_len 32 and 40" in row["diagnosis"]


def test_what_an_interrupted_reference_lacks_is_not_trusted(tmp_path):
    model = models.model()
    given = models.inputs(model.config)
    with parity_probe.record(model, tmp_path / "whole.h5", level="module"):
        models.run(model, given)
    model.head.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), parity_probe.record(model, tmp_path / "part.h5", level="module"):
        models.run(model, given)
    report = compare(tmp_path / "part.h5", tmp_path / "whole.h5", tmp_path / "report.json")
    assert report["verdict"] == "inconclusive" and report["counts"]["fail"] == 0 and len(report["ops"]) > 10
    assert [r["path"] for r in report["ops"] if r["verdict"] == "untrusted"] == ["(reference)"]
    assert program.run("compare", tmp_path / "part.h5", tmp_path / "whole.h5", "--quiet").returncode == 3
