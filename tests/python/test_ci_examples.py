"""The steps of the CI examples (reports/ci) run as they stand there: freeze, pass, worse, another machine class, no baseline."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "reference_dumps/skyreels-v2-t2v.bf16.h5"
STUB = '#!/bin/sh\nprintf "%s\\n" "$@" > gh.txt\n'   # stands for GitHub's own program


def github_steps(event):
    """(name, script, environment) of those `run` steps that GitHub would run."""
    text = (ROOT / "reports/ci/github.yml").read_text()
    for step in yaml.safe_load(text)["jobs"]["parity"]["steps"]:
        wanted = re.fullmatch(r"github.event_name == '(\w+)'", step.get("if", ""))
        assert wanted or step.get("if", "always()") == "always()"
        if "run" in step and (not wanted or wanted[1] == event):
            yield step["name"], step["run"], step.get("env", {}), "if" in step and not wanted


class Job:
    """A working folder, what GitHub hands to a job, and the binary under test."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin/gh").write_text(STUB)
        (folder / "bin/gh").chmod(0o755)
        binary = os.environ.get("PARITY_CHECK_BINARY", str(ROOT / "build/dev/parity-check"))
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PARITY_CHECK": binary, "REFERENCE": str(REFERENCE),
                            "BASELINE": str(folder / "baseline.json"), "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}

    def shell(self, script, **more):
        return subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=self.folder, env={**self.environment, **more}, capture_output=True, text=True, timeout=300)

    def github(self, event, between=None):
        """Exit status of the first step that fails, as the runner goes on; 0 when none does. `between`: after the step Compare."""
        for name in ("output", "summary.md", "gh.txt"):
            (self.folder / name).unlink(missing_ok=True)
        failed = 0
        for name, script, env, always in github_steps(event):
            if failed and not always:
                continue
            outputs = dict(line.split("=") for line in (self.folder / "output").read_text().splitlines()) if (self.folder / "output").exists() else {}
            known = {"inputs.reason": "a first one", "github.token": "secret", "github.event.number": "17", "steps.gate.outputs.status": outputs.get("status", "")}
            values = {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], value) for key, value in env.items()}
            done = self.shell(script, **values)
            failed = failed or done.returncode
            if name == "Compare" and between:
                between(self.folder / "parity-report/report.json")
        return failed

    def gitlab(self, between=None, **more):
        lines = yaml.safe_load((ROOT / "reports/ci/gitlab.yml").read_text())["parity"]["script"]   # in one shell; cut in two for `between`
        compared = self.shell("\n".join(lines[:2]), **more)
        if compared.returncode:
            return compared.returncode
        if between:
            between(self.folder / "parity-report/report.json")
        return self.shell("\n".join(lines[2:]), **more).returncode


def worse(report):
    content = json.loads(report.read_text())
    row = next(op for op in content["ops"] if op["kind"] == "linear" and op["dtype"] == "bf16")
    limit = next(limit for limit in row["limits"] if limit["statistic"] == "error_from_fp64")   # what an op on kernels of our own is held to
    limit["measured"] = 2 * limit["value"]
    report.write_text(json.dumps(content))


def elsewhere(report):
    content = json.loads(report.read_text())
    content["machine"]["threads"] += 1
    report.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    job = Job(tmp_path_factory.mktemp("job"))
    assert job.github("workflow_dispatch") == 0
    assert json.loads((job.folder / "baseline.json").read_text())["classes"][0]["reason"] == "a first one"
    assert (job.folder / "parity-report/baseline.json").exists()
    return job


def test_github_pass(job):
    assert job.github("pull_request") == 0
    summary = (job.folder / "summary.md").read_text()
    assert summary.startswith("### ✅ PASS: none of") and "parity" in summary and len(summary) < 1 << 20   # what GitHub renders
    assert (job.folder / "gh.txt").read_text().split()[:3] == ["pr", "comment", "17"]
    assert len((job.folder / "parity-report/comment.md").read_text()) < 65536   # a comment's limit


@pytest.mark.parametrize("change, status, words", [(worse, 1, "### ❌ WORSE: 1 of"), (elsewhere, 3, "### ❔ NOT DECIDED: the baseline has no entry")])
def test_github_red(job, change, status, words):
    assert job.github("pull_request", change) == status
    assert (job.folder / "summary.md").read_text().startswith(words)
    assert json.loads((job.folder / "parity-report/gate.json").read_text())["exit_status"] == status


def test_github_without_baseline(job):
    kept = (job.folder / "baseline.json").rename(job.folder / "kept.json")
    assert job.github("push") == 2
    kept.rename(job.folder / "baseline.json")


def test_gitlab(job, tmp_path):
    other = Job(tmp_path)
    assert other.gitlab() == 2
    assert other.gitlab(REASON="a first one") == 0 and (tmp_path / "parity-report/baseline.json").exists()
    assert other.gitlab(between=worse) == 1
