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


@pytest.mark.parametrize("name, says", [("Q/K not permuted", "RoPE pairing .neighbours paired"),  # the same rotation, told from the side of the scores
                                        ("norm weights plus one", "one plus forgotten"), ("RoPE scaling left out", "none of them scaled"),
                                        ("head left out (the embedding takes its place)", "")])
def test_a_fault_that_unpaired_what_lies_behind_it(name, says, folder, references):
    report, seconds = engine_faults.judge(BINARY, *engine_faults.record(name, folder, references))
    row = engine_faults.row(name, report, seconds)
    assert re.search(engine_faults.FAULTS[name].where, row["first divergence"]) and re.search(says, row["diagnosis"]), row
    assert row["paired"] >= 40, row
