"""The JAX examples in the README and in the folders' READMEs work as written, and record the model's values."""
import subprocess
import sys

import pytest

import documents

EXAMPLES = [(document, example) for document, some in documents.examples(jax=True).items() for example in some]


def test_the_readme_has_one():
    assert "README.md" in dict(EXAMPLES)


@pytest.mark.parametrize("document, example", EXAMPLES, ids=[d for d, _ in EXAMPLES])
def test_example(document, example, tmp_path):
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([sys.executable, "-m", "parity_probe", "show", "--all", "cand.h5"], cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    expected = ("layers.0", "layers.2") if document == "README.md" else ("norm.0", "norm.1")
    assert all(path in shown.stdout for path in expected), shown.stdout
