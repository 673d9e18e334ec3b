"""The zoo (scripts/zoo): its operators change what they say and leave nothing behind, its truth and intervals are right, and a small sample is judged well.

    python -m pytest tests/python/test_zoo.py     needs torch, transformers, diffusers; the sample also PARITY_CHECK_BINARY (else build/release or build/dev)
"""
import dataclasses
import itertools
import os
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
from selftest_models.family import Patches  # noqa: E402
from zoo import cases, produce, runner, tables, truth, unit, within  # noqa: E402
from zoo.benign import CHANGES, Change, counterparts  # noqa: E402
from zoo.catalogue import ENTRIES  # noqa: E402
from zoo.entry import KINDS  # noqa: E402
from zoo.intervals import share, wilson  # noqa: E402
from zoo.operators import OPERATORS  # noqa: E402
from zoo.operators.operator import sites  # noqa: E402

FORBIDDEN = ("gemma", "phi", "glm", "cohere", "deepseek", "mamba", "whisper", "swin", "convnext", "unet2dcondition", "flux", "ltx", "cogvideox", "hunyuanvideo")
MODELS = ("qwen3", "gptj", "bert", "t5", "deit", "resnet", "wav2vec2", "sd3", "prx", "unet2d")   # together every operator has a place in them


# --- the list ---------------------------------------------------------------------------------------------------------------
def test_the_list_is_large_enough_and_in_two_halves():
    assert len(ENTRIES) >= 30
    for half in ("development", "held_out"):
        assert {e.kind for e in ENTRIES.values() if e.half == half} == set(KINDS)
    assert not [e.model for e in ENTRIES.values() for word in FORBIDDEN if word in e.model.lower()]


def test_halves_are_fixed_for_ever():
    assert {name: ENTRIES[name].half for name in ("llama", "bert", "pixart", "unet2d")} == {
        "llama": "held_out", "bert": "development", "pixart": "held_out", "unet2d": "development"}


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


def test_cases_are_the_same_in_every_process():
    entry = ENTRIES["bert"]
    faults = cases.faults_of(entry, "bf16", entry.build("bf16"))
    assert [f.name for f in faults] == [f.name for f in cases.faults_of(entry, "bf16", entry.build("bf16"))]
    groups = [f.operator.group for f in faults[:6]]
    assert len(set(groups)) == 6, groups   # one group of operators after the other
    assert len({f.name for f in faults}) == len(faults)


# --- the operators ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def runs():
    """entry name, dtype -> plain boundaries."""
    return {}


def first_effect(operator, runs):
    """(entry, dtype, path, Truth) of the first place of the first model in which the operator changes something."""
    for name, dtype in itertools.product(MODELS, operator.dtypes):
        entry = ENTRIES[name]
        model = entry.build(dtype)
        for path in operator.find(model)[:6]:
            if (name, dtype) not in runs:
                runs[name, dtype] = produce.boundaries(entry, dtype)
            try:
                found = produce.boundaries(entry, dtype, (operator, path))
            except Exception:
                continue
            first = truth.truth_of(found, runs[name, dtype], sites(path))
            if first and not truth.slight(first):
                return entry, dtype, path, first
    return None


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_changes_what_it_says_and_is_undone(name, runs):
    operator = OPERATORS[name]
    effect = first_effect(operator, runs)
    assert effect, f"{name}: no place in {', '.join(MODELS)}"
    entry, dtype, path, first = effect
    assert first.path, "the first wrong boundary is the model's own result: the place says nothing"
    again = produce.boundaries(entry, dtype)   # a fresh model after the fault: nothing of it is left in shared code
    assert not [b.path for b, p in zip(again, runs[entry.name, dtype], strict=True) if capture.changed(b.value, p.value)]
    model = entry.build(dtype)
    with torch.no_grad(), Patches() as patch:
        operator.put_in(model, path, patch)
        entry.run(model, dtype)
    assert not [p for p, m in model.named_modules() if "forward" in vars(m) and type(m).__name__ != "Mish"], "a patched forward is left"


def test_norm_eps_is_scaled():
    norm = torch.nn.Sequential(torch.nn.LayerNorm(8, eps=1e-6))
    with Patches() as patch:
        OPERATORS["norm_eps_x10"].put_in(norm, "0", patch)
    assert norm[0].eps == pytest.approx(1e-5)


def test_gain_is_what_it_says():
    layer, x = torch.nn.Sequential(torch.nn.Linear(8, 8)), torch.ones(3, 8)
    plain = layer(x)
    with torch.no_grad(), Patches() as patch:
        OPERATORS["gain_1e-3"].put_in(layer, "0", patch)
        torch.testing.assert_close(layer(x) - layer[0].bias, (plain - layer[0].bias) * 1.001)
    assert torch.equal(layer(x), plain)


def test_late_downcast_and_no_upcast_change_the_places_of_roundings():
    from transformers.models.llama.modeling_llama import LlamaRMSNorm
    holder, x = torch.nn.Sequential(LlamaRMSNorm(32)).to(torch.bfloat16), torch.randn(5, 32).to(torch.bfloat16)
    holder[0].weight.data.copy_(1 + 0.3 * torch.randn(32))
    wide = x.float() * torch.rsqrt((x.float() ** 2).mean(-1, keepdim=True) + 1e-6)
    with torch.no_grad():
        with Patches() as patch:
            OPERATORS["late_downcast"].put_in(holder, "0", patch)
            assert torch.equal(holder(x), (holder[0].weight.float() * wide).to(torch.bfloat16))
        with Patches() as patch:
            OPERATORS["no_upcast"].put_in(holder, "0", patch)
            low = holder[0].weight * (x * torch.rsqrt((x ** 2).mean(-1, keepdim=True) + 1e-6))
            assert torch.equal(holder(x), low) and low.dtype == torch.bfloat16
        assert torch.equal(holder(x), holder[0].weight * wide.to(torch.bfloat16))


def test_residual_is_left_out():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            y = x + self.inner(x)
            return y + self.inner(y)
    holder, x = torch.nn.Sequential(Block()), torch.randn(3, 4)
    inner = holder[0].inner
    with torch.no_grad():
        for name, wanted in (("residual_missing", inner(x) + inner(inner(x))), ("second_residual_missing", inner(x + inner(x)))):
            with Patches() as patch:
                OPERATORS[name].put_in(holder, "0", patch)
                assert torch.equal(holder(x), wanted)


def test_changes_inside_a_module_spare_its_children():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.GELU()

        def forward(self, x):
            return F.gelu(x) - self.inner(x)
    seen, outer = [], Outer()

    def handler(func, args, kwargs):
        seen.append(func)
        return within.UNCHANGED
    with Patches() as patch:
        within.within(outer, patch, handler)
        outer(torch.ones(2))
    assert seen.count(F.gelu) == 1 and not any("forward" in vars(m) for m in outer.modules())


# --- benign changes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CHANGES)
def test_benign_change_stays_close(name):
    change = CHANGES[name]
    if change.environment:
        pytest.skip("a process of its own: in the sample")
    for family in ("qwen3", "gptj", "deit", "vit", "unet2d"):
        entry = ENTRIES[family]
        if not change.applies(entry, entry.build("fp32")):
            continue
        plain = produce.boundaries(entry, "fp32")
        pairs = counterparts(produce.boundaries(entry, "fp32", None, change, plain), plain)
        assert len(pairs) > 0.9 * len(plain)
        assert max(truth.relative(b.value, p.value) for b, p in pairs) < 1e-4
        return
    pytest.fail("applies to none of the models")


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


def test_a_benign_change_that_is_none_is_refused(tmp_path):
    here = unit.Unit(ENTRIES["bert"], "bf16", tmp_path, "")
    for factor, reason in ((1.0, "changes nothing"), (1.5, "is no rounding"), (float("nan"), "is no rounding")):
        change = Change("scaled", lambda factor=factor: kernels.Swap({F.gelu: lambda x, **kw: F.gelu(x, **kw) * factor}))
        assert reason in here.benign(change, 0)["refused"]


def test_norm_replacements_keep_the_layout():
    x = torch.randn(2, 7, 5).transpose(1, 2)
    for name in ("norms in float64", "norms in two passes", "norms in one pass"):
        with CHANGES[name].active():
            assert F.layer_norm(x, (7,)).is_contiguous(), name


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


# --- a sample -----------------------------------------------------------------------------------------------------------------
def binary():
    built = [ROOT / "build" / preset / "parity-check" for preset in ("release", "dev")]
    given = os.environ.get("PARITY_CHECK_BINARY")
    found = next((p for p in ([Path(given)] if given else built) if p.exists()), None)
    if found is None:
        pytest.skip("parity-check is not built")
    return found


def test_sample():
    """Faults of every group in models of every kind, both dtypes; a missed one or a false alarm is printed with what was said."""
    units = runner.selection("mistral,bert,resnet,wav2vec2,sd3")
    rows = runner.run(units, binary(), faults=2, benign=2)
    numbers, said = tables.Tally(rows).numbers(), tables.text(rows)
    print(said)
    found, faults = numbers["recall"]
    alarms, benign = numbers["false alarms"]
    assert faults == 20 and benign >= 18
    assert found == faults, said
    assert alarms == 0, said
    assert numbers["errors"][0] == 0, said
    green, itself = numbers["green against itself"]
    assert green == itself == 20, said


def test_the_sample_of_ci_has_every_kind_half_and_dtype():
    units = runner.selection(sample=True)
    assert {(e.kind, e.half) for e, _d in units} == set(itertools.product(KINDS, ("development", "held_out")))
    assert {d for _e, d in units} == {"fp32", "bf16"} and units == runner.selection(sample=True)


def test_an_empty_selection_is_refused():
    with pytest.raises(ValueError, match="no family is called gremlin"):
        runner.selection("gremlin")
