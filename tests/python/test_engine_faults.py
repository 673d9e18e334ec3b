"""Faults of a conversion to GGUF that leave nothing behind them as it was: found at their module, and what lies behind still paired. All twelve: engine_faults.py."""
import os
import pathlib
import re

import pytest

pytest.importorskip("xllamacpp")

import engine_faults  # noqa: E402

BINARY = os.environ.get("PARITY_CHECK_BINARY", str(pathlib.Path(__file__).resolve().parents[2] / "build/dev/parity-check"))


@pytest.fixture(scope="module")
def references():
    return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.mark.parametrize("name, paired", [("Q/K not permuted", 40), ("norm weights plus one", 40), ("KV head of query head h is h mod 2", 35)])
def test_a_fault_from_the_first_layer_on(name, paired, folder, references):
    report, seconds = engine_faults.judge(BINARY, *engine_faults.record(name, folder, references))
    fault, row = engine_faults.FAULTS[name], engine_faults.row(name, report, seconds)
    assert re.search(fault.where, row["first divergence"]) and row["named"] == "yes", row
    assert row["paired"] >= paired, row
