"""A small sample of the zoo, judged: stratified by kind of model, dtype and kind of case, and the same in every run. Its own teeth are shown first.

    python -m pytest tests/python/test_zoo_sample.py     needs torch, transformers, diffusers and PARITY_CHECK_BINARY (else build/release or build/dev)
"""
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import zoo  # noqa: E402

zoo.quiet()

from zoo import cases, produce, runner, tables, unit  # noqa: E402
from zoo.benign import Change  # noqa: E402
from zoo.catalogue import ENTRIES  # noqa: E402
from zoo.operators import OPERATORS  # noqa: E402


@pytest.fixture(scope="module")
def binary():
    built = [ROOT / "build" / preset / "parity-check" for preset in ("release", "dev")]
    given = os.environ.get("PARITY_CHECK_BINARY")
    found = next((p for p in ([Path(given)] if given else built) if p.exists()), None)
    if found is None:
        pytest.skip("parity-check is not built")
    return found


def fault(name):
    """A gain of the product after attention in the first block of BERT."""
    return cases.Fault(OPERATORS[name], "encoder.layer.0.attention.output.dense", None, "modules")


@pytest.fixture
def here(tmp_path, binary):
    return unit.Unit(ENTRIES["bert"], "fp32", tmp_path, binary)


def test_a_fault_called_benign_turns_the_sample_red(here):
    wrong = fault("gain_1e-4")
    row = here.benign(Change("a gain", prepare=lambda model, patch: wrong.operator.put_in(model, wrong.path, patch)), 0)
    assert tables.wrong(row) == "false alarm", row
    assert [line.partition(":")[0] for line in tables.Tally([row]).shortfalls()] == ["false alarms"]


def test_a_fault_whose_file_has_none_counts_as_missed(here, monkeypatch):
    found = here.fault(fault("gain_5e-3"))
    assert tables.wrong(found) is None and not tables.Tally([found]).shortfalls(), found
    monkeypatch.setattr(produce, "write", lambda path, entry, _found, wanted=None, right=produce.write: right(path, entry, here.plain))
    row = here.fault(fault("gain_5e-3"))
    assert tables.wrong(row) == "missed", row
    assert "recall" in {line.partition(":")[0] for line in tables.Tally([row]).shortfalls()}


def test_sample(binary, tmp_path):
    """The command of CI; a missed fault or a false alarm is printed with what was said."""
    file = tmp_path / "rows.json"
    path = os.pathsep.join([str(ROOT / "scripts"), str(ROOT / "probes" / "python")])
    done = subprocess.run([sys.executable, "-m", "zoo", "run", "--sample", "--jobs", "2", "--limit", "600", "--binary", str(binary),
                           "--json", str(file)],
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    print(done.stderr, done.stdout)
    assert done.returncode == 0, done.stdout
    units = runner.selection(sample=True)
    made = json.loads(file.read_text())["rows"]
    rows = [r for r in made if "refused" not in r]
    cases_of = {kind: Counter((r["family"], r["dtype"]) for r in rows if r["kind"] == kind) for kind in ("self", "fault", "benign")}
    assert cases_of["self"] == {(e.name, d): 2 for e, d in units}                                    # cases that are refused do not thin it out
    assert cases_of["fault"] == {(e.name, d): runner.SAMPLE["faults"] for e, d in units}
    without = cases_of["self"].keys() - cases_of["benign"].keys()                                    # no other kernel of this machine gives the entry other bits
    for family, dtype in without:                                                                     # though each was tried
        refusals = [r["refused"] for r in made if r["kind"] == "benign" and (r["family"], r["dtype"]) == (family, dtype)]
        assert len(refusals) >= 5 and set(refusals) == {"changes nothing"}, (family, refusals)
    assert len(without) <= 1
    assert cases_of["benign"].total() >= 22                                                             # one entry has a single one
    assert {r["group"] for r in rows if r["kind"] == "fault"} == {operator.group for operator in OPERATORS.values()}
