"""reports/cases: the table in README.md is what the rows say, every case is complete, and the root README repeats the score. Needs no package and no network."""
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "reports" / "cases"
sys.path.insert(0, str(CASES))
table = importlib.import_module("table")
cases, aside, rows = table.load()


def test_the_table_is_what_the_rows_say():
    assert (CASES / "README.md").read_text() == table.readme(cases, aside, rows)


def test_a_changed_row_would_be_seen():
    changed = json.loads(json.dumps(rows))
    changed[0]["found"] = not changed[0]["found"]
    assert (CASES / "README.md").read_text() != table.readme(cases, aside, changed)


def test_the_root_readme_repeats_the_score():
    assert table.score(rows) in (ROOT / "README.md").read_text()


def test_enough_were_found():
    assert sum(row["found"] for row in table.counted(rows)) >= 15


def test_every_case_has_its_row():
    assert [row["name"] for row in rows] == [case["name"] for case in cases]


@pytest.mark.parametrize("case", cases, ids=lambda case: case["name"])
def test_case_is_complete(case):
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(pull|issues|releases)/\S+", case["link"])
    assert len({case["faulty"], case["fixed"]}) == 2 and case["control"] != case["faulty"] and case["control"] != case["fixed"]
    assert case["at"] and case["bug"] and re.compile(case["module"]) and case["named"]
    assert (CASES / "models" / f"{case['name']}.py").read_text().startswith('"""')


@pytest.mark.parametrize("row", rows, ids=lambda row: row["name"])
def test_row_follows_from_what_was_said(row):
    """What run.py wrote is decided again from the module and the sentence beside it."""
    case = next(case for case in cases if case["name"] == row["name"])
    assert row["found"] == (row["counts"]["fail"] + row["counts"]["shape"] > 0) == (row["path"] is not None)
    assert row["at_module"] == (row["found"] and bool(re.fullmatch(case["module"], row["path"])))
    assert row["named"] == (row["found"] and bool(re.search(case["named"], row["sentence"])))
    assert (row["control"] == "pass") == (sum(row["control_counts"].values()) == row["control_counts"]["pass"])
