"""Every command and every Python example in the README works as written."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S) for line in block.splitlines() if line.strip()]
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.S)
RUNNING = "scripts/test"   # this very run


@pytest.fixture(scope="module")
def environment():
    """The README's reader: this Python first on the path. The build under test stands for the release build: another one would take minutes."""
    binary = Path(os.environ.get("PARITY_CHECK_BINARY", ROOT / "build/dev/parity-check"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return dict(os.environ, PATH=path, PARITY_PRESET=binary.parent.name, NO_COLOR="1")


def test_there_is_something_to_run():
    assert len(COMMANDS) >= 6 and len(EXAMPLES) >= 2 and RUNNING in COMMANDS


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != RUNNING])
def test_command(command, environment):
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_command_would_be_seen(environment):
    assert subprocess.run(["bash", "-c", "scripts/parity-check --layer no.such.layer"], cwd=ROOT, env=environment, capture_output=True).returncode == 2


def test_python_examples(environment, tmp_path):
    for example in EXAMPLES:
        if "parity_probe.jax" in example:
            continue
        done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    shown = subprocess.run([sys.executable, "-m", "parity_probe", "show", "ref.h5"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert shown.returncode == 0 and "GPT2LMHeadModel" in shown.stdout


@pytest.mark.parametrize("example", [e for e in EXAMPLES if "parity_probe.jax" in e])
def test_jax_examples(environment, tmp_path, example):
    python = Path(os.environ.get("PARITY_JAX_PYTHON", ROOT / ".venv-jax-new/bin/python"))
    if not python.exists():
        pytest.skip(f"{python} is missing (scripts/test makes it)")
    done = subprocess.run([python, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and list(tmp_path.glob("*.h5")), done.stderr
