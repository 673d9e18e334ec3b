"""Runs parity-check on two files and reads what it said."""
import json
import os
import subprocess
import time
from pathlib import Path

TIME_LIMIT = 120   # seconds a compare may take

EXIT = {0: "pass", 1: "fail", 2: "error", 3: "inconclusive"}
UNASKED = {"verdict": None, "exit": None, "seconds": 0.0, "path": None, "call": None, "op": None, "gate": None, "diagnosis": "", "doubts": []}


def compare(binary, reference, candidate, folder, limit=TIME_LIMIT, environment=None):
    """{verdict, exit, path, call, op, gate, diagnosis, doubts, seconds}; verdict "error" also for a crash and for a time-out."""
    report = Path(folder) / "report.json"
    report.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        done = subprocess.run([str(binary), "compare", str(reference), str(candidate), "--json", str(report), "--quiet"], capture_output=True, text=True,
                              timeout=limit, env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **(environment or {})}, cwd=folder)
        code, said = done.returncode, (done.stderr.strip().splitlines() or [""])[0]
    except subprocess.TimeoutExpired:
        code, said = None, f"no answer within {limit} s"
    outcome = {**UNASKED, "verdict": EXIT.get(code, "error"), "exit": code, "seconds": round(time.monotonic() - start, 3), "diagnosis": said, "doubts": []}
    if code in (0, 1, 3) and report.exists():
        outcome.update(_read(json.loads(report.read_text())))
    return outcome


def _read(report):
    first = report["first_divergence"]
    doubts = [f"{op['verdict']} {op['path'] or '(result)'} ({op['kind']}, {op['dtype']}): {op['diagnosis']}"
              for op in report["ops"] if op["verdict"] not in ("pass", "fail", "shape")]
    found = {"doubts": doubts[:5], "counts": report["counts"]}
    if first:
        found.update({k: first[k] for k in ("path", "call", "gate", "diagnosis")}, op=first["kind"])
    return found
