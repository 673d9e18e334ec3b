"""The pairs that the self test is measured on: each says the truth about itself.

    python -m pytest tests/python/test_selftest_pairs.py      making pairs anew needs torch, transformers, diffusers; a bitwise comparison the recording machine
"""
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "reference_dumps" / "selftest"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

from parity_probe.element_types import read_bits  # noqa: E402

MANIFEST = json.loads((FOLDER / "MANIFEST.json").read_text())
PAIRS = MANIFEST["pairs"]
# bf16: rounding in one block moves what follows by up to a few per cent; a fault's own first value is compared bitwise, not with this
CLOSE = {"fp32": 2e-5, "bf16": 4e-2}


def boundaries(file):
    """{(path, call): (dtype, bits)} in execution order, of a recording or of a writer's file."""
    found, calls, open_calls = {}, Counter(), {}
    with h5py.File(FOLDER / file, "r") as f:
        for line in f["trace/events"][...].tobytes().decode().splitlines():
            event = json.loads(line)
            if event["e"] == "point":
                found[event["path"], event["call"]] = read_bits(f["values"][event["k"]])
            elif event["e"] == "call":
                open_calls[event["id"]] = event["path"]
            elif event["e"] == "ret":
                for i, value in enumerate(event["outputs"]):
                    path = open_calls[event["id"]] + (f"[{i}]" if i else "")
                    found[path, calls[path]] = read_bits(f["values"][value["k"]])
                    calls[path] += 1
    return found


def real(dtype, bits):
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.astype(np.float64)


def same(a, b):
    return a[0] == b[0] and a[1].shape == b[1].shape and a[1].tobytes() == b[1].tobytes()


def distance(a, b):
    """Relative L2; infinite where dtype, shape or the positions of NaN differ."""
    x, y = real(*a), real(*b)
    if a[0] != b[0] or x.shape != y.shape or not np.array_equal(np.isnan(x), np.isnan(y)):
        return np.inf
    return np.linalg.norm(np.nan_to_num(x - y)) / max(np.linalg.norm(np.nan_to_num(y)), 1e-30)


REFERENCES = {e["file"]: boundaries(e["file"]) for e in MANIFEST["references"]}


def test_files_are_those_of_the_manifest():
    script = ROOT / "scripts" / "record_selftest_pairs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_check_goes_red(tmp_path):
    script, name = ROOT / "scripts" / "record_selftest_pairs.py", PAIRS[0]["file"]
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"references": [], "pairs": [PAIRS[0]], "total_bytes": 1}))
    for content, word in ((None, "missing"), (b"other", "sha256 differs")):
        if content:
            (tmp_path / name).write_bytes(content)
        done = subprocess.run([sys.executable, str(script), "--check", "--folder", str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 1 and word in done.stdout, done.stdout


def verify(entry):
    reference, candidate = REFERENCES[entry["reference"]], boundaries(entry["file"])
    assert set(candidate) <= set(reference)
    assert list(candidate) == [key for key in reference if key in candidate]   # in execution order
    limit, own = CLOSE[entry["dtype"]], (entry["module"], entry["call"])
    if entry["kind"] == "honest":
        assert entry["diagnosis"] is None and entry["module"] is None
        assert all(distance(candidate[key], reference[key]) < limit for key in candidate if key[0] != "~")
        assert any(not same(candidate[key], reference[key]) for key in candidate)
        return
    assert own in candidate and not same(candidate[own], reference[own])
    for key in candidate:
        if key == own:
            break
        if entry["with"]:
            assert distance(candidate[key], reference[key]) < limit, key
        else:
            assert same(candidate[key], reference[key]), key
    assert any(key[0] == "" or key[0].startswith("[") for key in candidate)   # the model's result is there
    assert 0 < entry["changed_share"] <= 1


@pytest.mark.parametrize("entry", PAIRS, ids=lambda e: e["file"].removesuffix(".h5"))
def test_a_pair_is_what_it_says(entry):
    verify(entry)


@pytest.mark.parametrize("lie", [
    dict(file="gpt2.fp32.fault.relu.h5"),                    # a fault called benign
    dict(file="gpt2.bf16.fault.no-causal-mask.h5"),
    dict(reference="gpt2.bf16.h5"),                          # another reference
    dict(kind="fault", module="transformer.wte", call=0),    # a module that is right
    dict(kind="fault", module="lm_head", call=0, changed_share=0.5),   # differs, but only as rounding does, and others before it
], ids=str)
def test_a_pair_that_lies_is_found(lie):
    entry = next(e for e in PAIRS if e["file"] == "gpt2.fp32.honest.norms-by-the-formula.h5")
    verify(entry)
    with pytest.raises(AssertionError):
        verify({**entry, **lie})


def test_no_reference_is_trivial():
    for name, values in REFERENCES.items():
        for key, value in values.items():
            x = real(*value)
            assert np.isfinite(x).all() and x.std() > 1e-3 and (x == 0).mean() < 0.8, (name, key)


def test_there_is_enough():
    from selftest_models.family import DIAGNOSES

    faults = [e for e in PAIRS if e["kind"] == "fault"]
    assert len({(e["family"], e["name"]) for e in faults}) >= 60
    assert len({(e["family"], e["name"]) for e in PAIRS if e["kind"] == "honest"}) >= 20
    assert len(PAIRS) > 150 and len({e["family"] for e in PAIRS}) >= 4
    assert {e["diagnosis"] for e in faults} == set(DIAGNOSES)
    assert sum(e["complete"] for e in faults) >= 25 and sum(e["recorded"] == "program" for e in faults) >= 4
    assert sum(e["with"] is not None for e in faults) > len(faults) / 2


# --- making them anew -------------------------------------------------------------------------------------------------
def families():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")
    from selftest_models.families import FAMILIES
    return FAMILIES


def pairs_of(family):
    from selftest_models import pairs
    return pairs.pairs_of(family)


NAMES = sorted({e["family"] for e in PAIRS})


def test_the_manifest_is_what_the_tables_say():
    from_tables = [f"{pair.name}.h5" for family in families().values() for pair in pairs_of(family)]
    assert sorted(from_tables) == sorted(e["file"] for e in PAIRS)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_faults_are_built_from_changes_no_bit(name):
    family = families()[name]
    from selftest_models import pairs
    from selftest_models.family import Fault

    for dtype in ("fp32", "bf16"):
        plain = pairs.listen(family, dtype)
        assert pairs.first_change(pairs.listen(family, dtype), plain) is None
        for put_in in family.neutral:
            found = pairs.listen(family, dtype, Fault("none", "gain", "", put_in, ""))
            assert pairs.first_change(found, plain) is None and [b.key for b in found] == [b.key for b in plain]


@pytest.mark.parametrize("name", NAMES)
def test_patches_are_undone(name):
    """A fault that stays in a library's function would be in every later pair."""
    family = families()[name]
    from selftest_models import pairs

    plain = pairs.listen(family, "bf16")
    for fault in family.faults:
        if "bf16" in fault.dtypes:
            pairs.listen(family, "bf16", fault)
    assert pairs.first_change(pairs.listen(family, "bf16"), plain) is None


@pytest.mark.parametrize("name", NAMES)
def test_made_anew_they_are_the_same(name, tmp_path):
    family = families()[name]
    from selftest_models import pairs
    from selftest_models.machine import machine

    if machine() != MANIFEST["machine"]:
        pytest.skip(f"recorded on another machine: {MANIFEST['machine']}")
    entries = {e["file"]: e for e in PAIRS}
    every = [p for p in pairs.pairs_of(family) if f"{p.name}.h5" in entries]
    some = every[::9] + [p for p in every if not p.fault][-1:]
    for pair in some:
        path = tmp_path / f"{pair.name}.h5"
        made = pairs.make(pair, path, pairs.listen(family, pair.dtype))
        assert {**made, "sha256": None} == {**entries[path.name], "sha256": None}
        again, kept = boundaries(path), boundaries(path.name)
        assert list(again) == list(kept) and all(same(again[key], kept[key]) for key in kept), pair.name


def test_a_fault_that_shows_nothing_is_refused(tmp_path):
    family = families()["gpt2"]
    from selftest_models import pairs
    from selftest_models.family import Fault

    plain = pairs.listen(family, "fp32")
    nothing = Fault("none", "gain", "", lambda m, p: None, "")
    elsewhere = Fault("eps", "norm eps", "transformer.h.1.ln_2", family.faults[0].put_in, "")
    for fault, words in ((nothing, "changes nothing"), (elsewhere, "first wrong at")):
        with pytest.raises(pairs.Refused, match=words):
            pairs.make(pairs.Pair(family, "fp32", fault, None), tmp_path / "a.h5", plain)
