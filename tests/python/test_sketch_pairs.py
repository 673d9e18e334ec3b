"""Sketches of the self test's pairs: what the rules without a program find in them, beside what they find in the whole tensors."""
import json
import math
from collections import Counter

import numpy as np

from test_sketch import SUITE, compare

from parity_probe import sketch, sketch_files

ROUNDOFF = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-24}
ORDER_AND_SIGN = ("RoPE axis order", "RoPE pairing", "RoPE sign", "channel order", "permuted heads", "weights swapped", "transposed weight", "shift and scale swapped",
                  "wrong normalised axis", "expert routing", "wrong layer's weights", "position off by one", "causal cache", "mask off by one", "window off by one", "stale value")


def outputs(path):
    recording = sketch_files._Recording(path)
    out = {}
    for name, call, role, _, value in recording.points():
        if role == "output" and value.get("k") is not None:
            flat, widen, _ = sketch.numbers(*recording.bits(value))
            out[name, call] = value["d"], value["s"], widen(flat)
    return out


def exact_verdict(a, b):
    """What the rules without a program say to the whole tensors; and their relative L2 difference."""
    finite = np.isfinite(a[2]) & np.isfinite(b[2])
    if not np.array_equal(np.where(np.isfinite(a[2]), 0, a[2]), np.where(np.isfinite(b[2]), 0, b[2]), equal_nan=True):
        return "fail", None
    error = np.linalg.norm((b[2] - a[2])[finite]) / np.linalg.norm(a[2][finite])
    unit = max(ROUNDOFF[a[0]], ROUNDOFF[b[0]])
    return "fail" if error > (1024 if unit == 2**-24 else 64) * unit or a[0] != b[0] else "inconclusive" if error > 2 * unit else "pass", error


def test_pairs_with_a_known_answer(tmp_path):
    """Both sides as sketches of 256 buckets, less than most tensors have numbers. A fault whose largest relative L2 difference anywhere is above the
    detection limit (2 unit roundoffs) is found; no benign pair fails that the whole tensors would pass."""
    pairs, found, references, errors = json.loads((SUITE / "MANIFEST.json").read_text())["pairs"], Counter(), {}, []
    for pair in pairs:
        if pair["reference"] not in references:
            sketch_files.convert(SUITE / pair["reference"], tmp_path / pair["reference"], buckets=256)
            references = {pair["reference"]: outputs(SUITE / pair["reference"])}
        sketch_files.convert(SUITE / pair["file"], tmp_path / "cand.h5", buckets=256)
        status, report = compare(tmp_path / pair["reference"], tmp_path / "cand.h5", tmp_path)
        candidate, seen, above = outputs(SUITE / pair["file"]), set(), False
        for op in report["ops"]:
            key = op["path"], op["call"]
            if op["verdict"] == "missing" or key not in candidate:
                continue
            a, b = references[pair["reference"]][key], candidate[key]
            if a[0] not in ROUNDOFF or a[1] != b[1]:
                continue
            expected, error = exact_verdict(a, b)
            seen.add(op["verdict"])
            above = above or expected != "pass"
            assert expected == "fail" or op["verdict"] != "fail", (pair["file"], key)
            assert expected == "pass" or op["verdict"] != "pass" or error is None, (pair["file"], key, error, op["free"]["rel_l2"])
            if error and op["free"]["rel_l2"]:
                errors.append((op["free"]["rel_l2"] / error - 1) * math.sqrt(2 * 256))
        verdict = "found" if seen - {"pass"} else "passed"
        found[pair["kind"], verdict] += 1
        first = report["first_divergence"]
        found["at its module", bool(first) and first["path"] == pair["module"]] += pair["kind"] == "fault" and report["verdict"] == "fail"
        if pair["kind"] == "fault":
            assert (verdict == "found") == above or verdict == "found", pair["file"]
            assert pair["diagnosis"] not in ORDER_AND_SIGN or verdict == "found", pair["file"]
    assert found["fault", "found"] >= 174 and found["fault", "found"] + found["fault", "passed"] == 182
    assert found["at its module", True] >= 120 and found["at its module", False] <= 10
    errors = np.array(errors)
    assert len(errors) > 2000 and .8 < np.sqrt((errors**2).mean()) < 1.1 and (abs(errors) > 4).mean() < .002   # the stated standard error is the measured one
