"""The zoo (scripts/zoo): every entry of its list can be built, its cases, its truth, intervals and tables are right.

    python -m pytest tests/python/test_zoo.py     needs torch, transformers, diffusers
"""
import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import zoo  # noqa: E402

zoo.quiet()

from selftest_models import capture, kernels  # noqa: E402
from zoo import benign, cases, check, dry, runner, tables, truth, unit  # noqa: E402
from zoo.benign import Change  # noqa: E402
from zoo.catalogue import ENTRIES  # noqa: E402
from zoo.entry import KINDS  # noqa: E402
from zoo.intervals import share, wilson  # noqa: E402
from zoo.operators import OPERATORS  # noqa: E402

# --- the list -----------------------------------------------------------------------------------------------------------------
def test_a_dry_run_asks_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "compare", lambda *_: pytest.fail("parity-check was asked"))
    rows = unit.run(ENTRIES["bert"], "fp32", None, 1, 1, elsewhere=False)
    made = [r["kind"] for r in rows if "refused" not in r]
    assert made == ["self", "self", "fault", "benign"] and {r["verdict"] for r in rows if "refused" not in r} == {None}
    said = dry.text([*rows, {**rows[-1], "refused": "does not run: RuntimeError: x"}])
    assert "1 faults,  1 benign" in said and "1 x does not run" in said and "x does not run:" not in said
    assert not any(map(tables.wrong, rows))


def is_installed(entry):
    return not entry.is_elsewhere or importlib.util.find_spec(entry.library.partition(".")[0]) is not None


@pytest.mark.parametrize("number, name", enumerate(name for name, entry in ENTRIES.items() if is_installed(entry)))
def test_every_entry_is_built_by_the_installed_libraries(number, name):
    """One that they cannot build leaves the list: nothing is skipped. In fp32 and bf16 in turn: the same calls build both."""
    dtypes = ENTRIES[name].dtypes
    assert next(ENTRIES[name].build(dtypes[number % len(dtypes)]).parameters()).numel()


@pytest.mark.parametrize("name", ("qwen3", "wav2vec2", "resnet", "sd3"))
def test_weights_are_spread(name):
    model = ENTRIES[name].build("fp32")
    saved = {n: t for n, t in model.state_dict().items() if t.is_floating_point() and t.numel() > 1}
    assert not [n for n, t in saved.items() if t.min() == t.max()]
    assert not [n for n, t in saved.items() if n.endswith("bias") and t.abs().max() == 0]


def test_bf16_keeps_computed_buffers():
    model = ENTRIES["qwen3"].build("bf16")
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert ENTRIES["m2m_100"].build("bf16").encoder.embed_positions.weights.dtype == torch.bfloat16   # made in torch's default dtype: tables=True


def test_cases_are_the_same_in_every_process():
    entry = ENTRIES["bert"]
    faults = cases.faults_of(entry, "bf16", entry.build("bf16"))
    assert [f.name for f in faults] == [f.name for f in cases.faults_of(entry, "bf16", entry.build("bf16"))]
    groups = [f.operator.group for f in faults[:6]]
    assert len(set(groups)) == 6, groups   # one group of operators after the other
    assert len({f.name for f in faults}) == len(faults)


def test_the_sample_of_ci_has_every_kind_and_dtype_of_one_half():
    units = runner.selection(sample=True)
    assert {e.kind for e, _d in units} == set(KINDS) and {e.half for e, _d in units} == {"development"}
    for kind in KINDS:
        assert {d for e, d in units if e.kind == kind} == {"fp32", "bf16"}, kind
    assert units == runner.selection(sample=True)


def test_an_empty_selection_is_refused():
    with pytest.raises(ValueError, match="no family is called gremlin"):
        runner.selection("gremlin")


# --- the truth ----------------------------------------------------------------------------------------------------------------
HERE = truth.Truth("layers.1.attn.out", 0, ("layers.1.attn", "layers.1.attn.out"), ("layers.1.attn",), 0.5, 100, 0.1)


@pytest.mark.parametrize("path, call, right", [
    ("layers.1.attn.out", 0, True), ("layers.1.attn.out[1]", 0, True), ("layers.1.attn", 0, True), ("layers.1.attn/softmax.0", 0, True),
    ("layers.1.attn.out/addmm.0", 0, True), ("layers.1.attn.out", 1, False), ("layers.1/add.0", 0, False), ("layers.1.attn.q", 0, False),
    ("layers.1", 0, False), ("layers.0.attn.out", 0, False), ("layers.1.attn.q/addmm.0", 0, False), ("", 0, False), ("/add.0", 0, False)])
def test_right_module(path, call, right):
    assert truth.names_it(path, call, HERE) is right


def test_the_way_between_two_modules():
    assert truth.between("b.0", "b.0.norm") == {"b.0", "b.0.norm"}
    assert truth.between("b.0.attn", "b.0.mlp.fc") == {"b.0.attn", "b.0", "b.0.mlp", "b.0.mlp.fc"}
    assert truth.between("", "a") == {"", "a"}


def test_truth_is_the_first_boundary_that_differs():
    def boundaries(*values):
        return [capture.Boundary(path, 0, torch.tensor(v), again) for (path, again), v in
                zip((("a", False), ("b", False), ("box", True), ("c", False)), values)]
    plain = boundaries([1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [5.0, 6.0])
    wrong = boundaries([1.0, 2.0], [3.0, 4.5], [3.0, 4.5], [5.0, 7.0])
    first = truth.truth_of(wrong, plain, ["x"])
    assert (first.path, first.names, first.share, first.count) == ("b", ("b", "box"), 0.5, 1)
    assert truth.truth_of(plain, plain, []) is None
    assert not truth.slight(first) and truth.slight(dataclasses.replace(first, relative=1e-5))


def test_a_mutation_without_effect_is_refused(tmp_path):
    here = unit.Unit(ENTRIES["bert"], "bf16", tmp_path, "")
    row = here.fault(cases.Fault(OPERATORS["norm_eps_x0.1"], "embeddings.LayerNorm", None, "modules"))   # eps 1e-12
    assert row["refused"] == "changes nothing"


def test_a_change_of_layout_that_rounds_once_more_is_refused(tmp_path):
    """A batch of one leaves PVT's map of pixels strided: F.linear then rounds the product before it adds the bias. In float32 models that is no matter."""
    pvt = unit.Unit(ENTRIES["pvt_v2"], "bf16", tmp_path, None)
    assert "rounds a product before its bias" in pvt.benign(benign.CHANGES["one sample at a time"], 0)["refused"]
    split = pvt.benign(benign.CHANGES["products split over K"], 0)   # these go on in float32 until the bias is added
    assert split.get("refused", "") in ("", "changes nothing")   # nothing on CPUs that have no products of bf16: there sums are rounded to the same bits
    wide = unit.Unit(ENTRIES["pvt_v2"], "fp32", tmp_path, None)
    assert "refused" not in wide.benign(benign.CHANGES["one sample at a time"], 0)


def test_a_benign_change_that_is_none_is_refused(tmp_path):
    here = unit.Unit(ENTRIES["bert"], "bf16", tmp_path, "")
    for factor, reason in ((1.0, "changes nothing"), (1.5, "is no rounding"), (float("nan"), "is no rounding")):
        change = Change("scaled", lambda factor=factor: kernels.Swap({F.gelu: lambda x, **kw: F.gelu(x, **kw) * factor}))
        assert reason in here.benign(change, 0)["refused"]


@pytest.mark.parametrize("a, b", [((3, 4, 7), (7, 5)), ((2, 4, 7), (2, 7, 5)), ((3, 4, 7), (7,)), ((7,), (7,))])
def test_a_product_split_in_two_takes_what_matmul_takes(a, b):
    a, b = torch.randn(a), torch.randn(b)
    with kernels.Swap(kernels.TABLES["products split over K"]):
        split = a @ b
    torch.testing.assert_close(split, a @ b)


# --- the score ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("hits, trials, low, high", [
    (0, 10, 0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1), (373, 374, 0.9850, 0.9995), (0, 0, 0, 1)])
def test_wilson(hits, trials, low, high):
    assert wilson(hits, trials) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_share_is_printed_with_its_interval():
    assert share(373, 374) == "373 of 374, 99.7% [98.5, 100.0]" and share(0, 0) == "0 of 0"


def test_tables_count_everything():
    def row(kind, verdict, **more):
        return {"family": "x", "half": "development", "model_kind": "vision", "dtype": "bf16", "kind": kind, "name": "n", "verdict": verdict, "seconds": 1.0,
                "path": "a", "call": 0, "diagnosis": "gain (…)", "doubts": [], "recorded": "modules", **more}
    fault = {"operator": "gain", "group": "weight", "with": None, "truth": dataclasses.asdict(HERE)}
    rows = [row("fault", "fail", found=True, placed=True, named=True, **fault), row("fault", "fail", found=True, placed=False, named=None, **fault),
            row("fault", "pass", found=False, placed=False, named=False, **fault), row("fault", "error", found=False, placed=False, named=None, **fault),
            row("benign", "pass"), row("benign", "fail"), row("benign", "inconclusive"), row("self", "pass"), row("self", "inconclusive"),
            {**row("fault", ""), "refused": "changes nothing"}]
    assert tables.Tally(rows).numbers() == {"recall": (2, 4), "right module": (1, 4), "right name": (1, 2), "false alarms": (1, 3),
                                            "benign inconclusive": (1, 3), "errors": (1, 9), "green against itself": (1, 2)}
    said = tables.text(rows)
    assert all(word in said for word in ("missed", "misplaced", "false alarm", "inconclusive", "not green against itself", "recall                 2 of 4"))
    assert "misplaced" not in tables.text(rows, details=False)


@pytest.mark.parametrize("kind, verdicts, short", [
    ("benign", {"pass": 20, "inconclusive": 1}, []), ("benign", {"pass": 18, "inconclusive": 1}, ["benign inconclusive"]),
    ("benign", {"pass": 99, "fail": 1}, ["false alarms"]), ("benign", {"pass": 99, "error": 1}, ["errors"]),
    ("self", {"pass": 99, "inconclusive": 1}, ["green against itself"]),
    ("fault", {"fail": 100}, []), ("fault", {"fail": 99, "pass": 1}, []), ("fault", {"fail": 98, "pass": 2}, ["recall"])])
def test_what_is_asked(kind, verdicts, short):
    rows = [{"kind": kind, "verdict": verdict, "found": verdict == "fail", "placed": True, "named": None}
            for verdict, times in verdicts.items() for _ in range(times)]
    assert [line.partition(":")[0] for line in tables.Tally(rows).shortfalls()] == short
