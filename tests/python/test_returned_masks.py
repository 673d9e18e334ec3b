"""A model that returns a mask beside its result (ACE-Step's encoder of conditions: which of the packed places are taken): the mask is compared, value by value."""
import json
import pathlib
import sys

import killed
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from zoo import catalogue, produce  # noqa: E402

ENTRY = catalogue.ENTRIES["ace_step_condition"]


def compare(reference, candidate, tmp_path):
    """(exit status, rows that do not pass by path)"""
    report = tmp_path / "report.json"
    status, _, _ = killed.ask("compare", reference, candidate, "--json", report, "--quiet")
    return status, {row["path"]: row["verdict"] for row in json.loads(report.read_text())["ops"] if row["verdict"] != "pass"}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_returned_mask(dtype, tmp_path, monkeypatch):
    from diffusers.pipelines.ace_step import modeling_ace_step
    whole, modules, fault = tmp_path / "whole.h5", tmp_path / "modules.h5", tmp_path / "fault.h5"
    produce.record(whole, ENTRY, dtype, "op")
    produce.write(modules, ENTRY, produce.boundaries(ENTRY, dtype))
    assert compare(whole, whole, tmp_path) == (0, {})
    assert compare(whole, modules, tmp_path) == (0, {})

    pack = modeling_ace_step._pack_sequences

    def one_place_too_many(*arguments):
        packed, mask = pack(*arguments)
        mask[:, mask.sum(dim=1).max().clamp(max=mask.shape[1] - 1)] = True
        return packed, mask

    monkeypatch.setattr(modeling_ace_step, "_pack_sequences", one_place_too_many)
    produce.write(fault, ENTRY, produce.boundaries(ENTRY, dtype))
    status, wrong = compare(whole, fault, tmp_path)
    assert status == 1 and "[1]" in wrong, wrong
