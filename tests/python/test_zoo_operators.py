"""The zoo's operators change what they say and leave nothing behind; its benign changes stay close.

    python -m pytest tests/python/test_zoo_operators.py     needs torch, transformers, diffusers
"""
import itertools
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import zoo  # noqa: E402

zoo.quiet()

from selftest_models import capture  # noqa: E402
from selftest_models.family import Patches  # noqa: E402
from zoo import produce, truth, within  # noqa: E402
from zoo.benign import CHANGES, counterparts  # noqa: E402
from zoo.catalogue import ENTRIES  # noqa: E402
from zoo.operators import OPERATORS  # noqa: E402
from zoo.operators.operator import sites  # noqa: E402

MODELS = ("qwen3", "gptj", "bert", "t5", "deit", "resnet", "wav2vec2", "sd3", "prx", "unet2d")   # together every operator has a place in them


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


# --- benign changes -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CHANGES)
def test_benign_change_stays_close(name):
    change = CHANGES[name]
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


def test_norm_replacements_keep_the_layout():
    x = torch.randn(2, 7, 5).transpose(1, 2)
    for name in ("norms in float64", "norms in two passes", "norms in one pass"):
        with CHANGES[name].active():
            assert F.layer_norm(x, (7,)).is_contiguous(), name
