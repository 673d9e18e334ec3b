"""Every command and every example in the README, in the folders' READMEs and in CONTRIBUTING works as written; what they point to exists."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import documents
from documents import DOCUMENTS, ROOT

RUNNING = "scripts/test"   # this very run


@pytest.fixture(scope="module")
def environment():
    """The README's reader: this Python first on the path. The build under test stands for the release build: another one would take minutes."""
    binary = Path(os.environ.get("PARITY_CHECK_BINARY", ROOT / "build/dev/parity-check"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return dict(os.environ, PATH=path, PARITY_PRESET=binary.parent.name, NO_COLOR="1")


def test_there_is_something_to_run():
    commands = documents.commands()
    assert len(commands) >= 20 and documents.Command(RUNNING) in commands and any(c.status == 1 for c in commands)
    assert {"README.md", "probes/README.md"} <= set(documents.examples(jax=False)) and {"README.md"} <= set(documents.examples(jax=True))
    assert len(documents.programs()) >= 2


@pytest.mark.parametrize("command", [c for c in documents.commands() if c.line != RUNNING], ids=lambda c: c.line)
def test_command(command, environment):
    done = subprocess.run(["bash", "-c", command.line], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == command.status, done.stdout + done.stderr


def test_a_wrong_command_would_be_seen(environment):
    assert subprocess.run(["bash", "-c", "scripts/parity-check --layer no.such.layer"], cwd=ROOT, env=environment, capture_output=True).returncode == 2


@pytest.mark.parametrize("document, examples", documents.examples(jax=False).items())
def test_python_examples(document, examples, environment, tmp_path):
    for example in examples:
        done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("*.h5"))
    assert files, "nothing was recorded"
    for file in files:
        shown = subprocess.run([sys.executable, "-m", "parity_probe", "show", file], env=environment, capture_output=True, text=True)
        assert shown.returncode == 0, shown.stderr
        if document == "README.md" and file.name == "ref.h5":
            assert "GPT2LMHeadModel" in shown.stdout


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize("document, example", documents.programs(), ids=[d for d, _ in documents.programs()])
def test_cpp_examples(document, example, tmp_path):
    """The example's lines in a `main` that has `data`; the first of them includes the header."""
    include, body = example.split("\n", 1)
    text = f"#include <cstdint>\n#include <cstdlib>\n{include}\nint main() {{\n  const std::uint16_t data[768] = {{}};\n{body}\n}}\n"
    (tmp_path / "port.cpp").write_text(text)
    flags = [subprocess.run(["pkg-config", kind, "hdf5"], capture_output=True, text=True, check=True).stdout.split() for kind in ("--cflags", "--libs")]
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Werror", "-I", ROOT / "probes/cpp", *flags[0], "port.cpp", "-o", "port", *flags[1], "-pthread"], cwd=tmp_path, check=True)
    subprocess.run(["./port"], cwd=tmp_path, env={**os.environ, "PARITY_DUMP": "cand.h5"}, check=True)
    shown = subprocess.run([sys.executable, "-m", "parity_probe", "show", "--all", "cand.h5"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0 and "blocks.0.norm1" in shown.stdout, shown.stdout + shown.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=documents.name)
def test_nothing_is_left_to_fill_in(document):
    """A word in capitals alone on its line stood for a table that was to come."""
    assert not re.findall(r"^(?:[A-Z]{3,}|TODO.*|FIXME.*)$", document.read_text(), re.M)


@pytest.mark.parametrize("document", DOCUMENTS, ids=documents.name)
def test_what_is_named_exists(document):
    missing = [target for target in documents.links(document) if not exists(document, target)]
    missing += [path for path in documents.paths(document) if not any(ROOT.glob(path.rstrip("/")))]
    assert not missing


def exists(document, target):
    file, _, anchor = target.partition("#")
    other = (document.parent / file).resolve() if file else document
    return other.exists() and (not anchor or anchor in documents.anchors(other))


def test_a_broken_link_would_be_seen():
    readme = ROOT / "README.md"
    assert exists(readme, "src/judge/README.md#glossary") and exists(readme, "#two-commands")
    assert not exists(readme, "src/judge/README.md#no-such-heading") and not exists(readme, "src/nothing.md")
    assert len([p for d in DOCUMENTS for p in documents.paths(d)]) > 60
