"""`cmake --install`: the program and the C++ recorder work from another folder, with nothing of the build or the sources but LibTorch.

    python -m pytest tests/python/test_install.py     needs a built program (PARITY_CHECK_BINARY), cmake, g++
"""
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PARITY_CHECK_BINARY", ROOT / "build/dev/parity-check")).parent
BMP = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + 32 * 24 * 3, 0, 0, 54, 40, 32, 24, 1, 24, 0, 32 * 24 * 3, 2835, 2835, 0, 0)   # the head of 32 x 24 pixels
PORT = """#include <parity_probe.hpp>
int main() {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  parity::probe::Writer w("cand.h5");
  w.write("layer", values, {2, 3});
}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where everything was installed, and then moved to: no path of its own is in it."""
    folder = tmp_path_factory.mktemp("install")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "first"], check=True, capture_output=True)
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


def home(prefix):
    return (prefix / "bin/parity-check").resolve().parent


def started(prefix, *arguments, **environment):
    done = subprocess.run([prefix / "bin/parity-check", *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode in (0, 1), done.stderr[-2000:]
    return done


def test_recordings_are_those_beside_it(prefix, tmp_path):
    started(prefix, "run", "--layer", "patch_embedding", "--json", tmp_path / "run.json")
    compared = json.loads((tmp_path / "run.json").read_text())
    assert home(prefix) in Path(compared["reference"]["path"]).parents and len(compared["ops"]) >= 16


def test_whole_program_is_the_one_beside_it(prefix):
    """Another one in its place is what is started."""
    whole = home(prefix) / "parity-check-all"
    whole.rename(whole.with_suffix(".away"))
    try:
        whole.write_text("#!/bin/sh\necho beside: $1\n")
        whole.chmod(0o755)
        assert started(prefix, "doctor").stdout == "beside: doctor\n"
    finally:
        whole.with_suffix(".away").replace(whole)


def test_codecs_are_those_beside_it(prefix, tmp_path):
    for name, grey in (("a", 40), ("b", 41)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f0.bmp").write_bytes(BMP + bytes([grey]) * (32 * 24 * 3))
    said = started(prefix, "video", tmp_path / "a", tmp_path / "b", LD_DEBUG="files").stderr
    assert f"{home(prefix)}/libparity-pictures.so" in said and f"{BUILD}/libparity" not in said


def test_recorder_compiles_by_pkg_config(prefix, tmp_path):
    (tmp_path / "port.cpp").write_text(PORT)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "parity-probe"], capture_output=True, text=True, check=True,
                           env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}).stdout.split()
    assert not [flag for flag in flags if flag.startswith(f"-I{ROOT}/")]
    subprocess.run(["g++", "-std=c++17", "port.cpp", "-o", "port", *flags], cwd=tmp_path, check=True)
    subprocess.run(["./port"], cwd=tmp_path, check=True)
    shown = subprocess.run([prefix / "bin/parity-check", "inspect", tmp_path / "cand.h5"], capture_output=True, text=True)
    assert shown.returncode == 0 and "1 boundaries, 1 leaves (24 B)" in shown.stdout, shown.stdout + shown.stderr
