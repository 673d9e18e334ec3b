"""scripts/selftest_when_changed runs the whole self test exactly when something that judges has changed, and fails with it.

Usage: check_selftest_when_changed.py ROOT. A script stands in for parity-check: it notes its arguments and exits as told."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
RESULT = {"schema": "parity-selftest/1", "machine": {}, "totals": {"faults": 1},
          "pairs": [{"file": "a.h5", "found": True, "located": True, "named": True, "false_alarm": False}]}
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
open(os.environ["CALLS"], "a").write(" ".join(sys.argv[1:]) + "\\n")
open(sys.argv[sys.argv.index("--json") + 1], "w").write(os.environ["RESULT"])
sys.exit(int(os.environ["STATUS"]))
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree, calls = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "calls"
        for name in ("measure", "pair", "calls", "ranks", "diagnose", "judge", "jobs", "trace"):
            (tree / "src" / name).mkdir(parents=True)
            (tree / "src" / name / "a.cpp").write_text(name)
        (tree / "src" / "selftest").mkdir()
        (tree / "reference_dumps" / "selftest").mkdir(parents=True)
        (tree / "reference_dumps" / "selftest" / "MANIFEST.json").write_text("{}")
        binary = pathlib.Path(folder) / "parity-check"
        binary.write_text(STAND_IN)
        binary.chmod(0o755)

        def run(status, *arguments):
            """Exit status, and the arguments of the self test's call if there was one."""
            calls.write_text("")
            environment = {**os.environ, "CALLS": str(calls), "RESULT": json.dumps(RESULT), "STATUS": str(status)}
            done = subprocess.run([sys.executable, ROOT / "scripts" / "selftest_when_changed", "--root", tree, "--binary", binary, *arguments],
                                  env=environment, capture_output=True, text=True)
            return done.returncode, calls.read_text()

        score = tree / "src" / "selftest" / "score.json"
        assert run(1, "--update")[0] == 1 and not score.exists(), "a bad score was recorded"
        status, call = run(0, "--update")
        assert status == 0 and "--leave-one-family-out" in call and "SCORE.md" in call, call
        assert json.loads(score.read_text())["pairs"] == RESULT["pairs"]
        assert run(1) == (0, ""), "unchanged, and the suite ran"
        status, call = run(0, "--sample", "7")
        assert status == 0 and f"--sample 7 --against {score}" in call, call
        assert run(1, "--sample", "7")[0] == 1, "a fault that the sample lost is not red"
        for name in ("measure", "pair", "calls", "ranks", "diagnose", "judge", "jobs", "trace"):
            file = tree / "src" / name / "a.cpp"
            file.write_text("other")
            status, call = run(0)
            assert status == 0 and f"--against {score}" in call, (name, call)
            assert run(1)[0] == 1, f"{name}: a loss is not red"
            assert "--sample" not in run(0, "--sample", "7")[1], f"{name}: changed, and a sample alone was judged"
            file.write_text(name)
        (tree / "src" / "judge" / "b.hpp").write_text("")
        assert run(0)[1], "a new file is no change"
        (tree / "src" / "judge" / "b.hpp").unlink()
        assert run(1) == (0, "")
        (tree / "reference_dumps" / "selftest" / "MANIFEST.json").write_text('{"pairs": []}')
        assert run(0)[1], "another suite is no change"


main()
