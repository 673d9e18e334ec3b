"""Twelve faults of a conversion to GGUF, run by the real llama.cpp: each found at its module, and what lies behind it still paired."""
import re

import pytest

pytest.importorskip("xllamacpp")

import engine_faults  # noqa: E402

# Told as the same rotation from the side of the scores: neighbours are paired where halves should be.
SAYS = {"Q/K not permuted": "RoPE pairing .neighbours paired", "KV head of query head h is h mod 2": "permuted heads .heads group by group",
        "head left out (the embedding takes its place)": "embed_tokens.weight instead of lm_head.weight"}


@pytest.fixture(scope="module")
def references():
    return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


def test_there_are_twelve():
    assert len(engine_faults.FAULTS) == 12


@pytest.mark.parametrize("outputs", ["all", "last"])   # "last": the last layer, too, computes the last token alone behind attention
@pytest.mark.parametrize("name", engine_faults.FAULTS)
def test_a_fault_is_found_at_its_module_and_named(name, outputs, folder, references):
    fault = engine_faults.FAULTS[name]
    report, seconds = engine_faults.judge(*engine_faults.record(name, folder, references, outputs))
    row = engine_faults.row(name, report, seconds)
    assert re.search(fault.where, row["first divergence"]) and re.search(SAYS.get(name, fault.named), row["diagnosis"], re.I), row
    assert row["paired"] >= 49, row
