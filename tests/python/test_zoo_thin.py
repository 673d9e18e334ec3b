"""Nameless ports that recorded half of their modules, behind gross faults: which tensor is which. Each was in part wrong, or not paired.

    python -m pytest tests/python/test_zoo_thin.py     needs torch, transformers, diffusers, and parity-check as program.py finds it
"""
import sys
from pathlib import Path

import program
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import zoo  # noqa: E402

zoo.quiet()

from zoo import produce, thin  # noqa: E402
from zoo.catalogue import ENTRIES  # noqa: E402
from zoo.unit import Unit  # noqa: E402

CASES = [   # and what was wrong
    ("bert", "bf16", "scale_missing@encoder.layer.0.attention.self"),                           # an order of axes that fitted by chance
    ("falcon", "bf16", "bias_dropped@transformer.h.0.mlp.dense_4h_to_h"),                       # the product before the bias, of another shape
    ("deit", "fp32", "stale_layer@layers.0.attention.v_proj|layers.1.attention.v_proj"),        # a trial taken back, as its tensor was an earlier one's, too
    ("autoencoder_oobleck", "fp32", "residual_missing@encoder.block.1.res_unit3"),              # a value that is like what is computed from it
    ("mochi", "fp32", "second_residual_missing@transformer_blocks.0"),                          # a norm's result in place of its input
]


def judged(tmp_path, family, dtype, fault, blocks="", alike=True):
    unit = Unit(ENTRIES[family], dtype, tmp_path, program.BINARY)
    produce.record(unit.reference, unit.entry, dtype, "op")
    found = next(found for name, found in thin.ports(unit, 99) if name == fault)
    row = thin.judged(unit, thin.Recorded(unit.reference), fault + blocks, found, alike)
    return row["exit"], row["wrong"], row["missed"]


@pytest.mark.parametrize("family, dtype, fault", CASES)
def test_tensors_behind_a_fault_are_paired(tmp_path, family, dtype, fault):
    assert judged(tmp_path, family, dtype, fault) == (1, [], [])


def test_numbers_that_count_tensors_are_no_names_of_modules(tmp_path):
    """Each block has recorded other modules: t17 and t20 of one do not say what t25 and t28 of the next are."""
    assert judged(tmp_path, "stablelm", "fp32", "activation@model.layers.0.mlp.act_fn", "9", alike=False) == (1, [], [])
