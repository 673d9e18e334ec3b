"""The library of test_native.py: where it is found, what happens without it, and that the tests see its faults."""
import os
import shutil
import subprocess
from pathlib import Path

import h5py
import pytest
import torch

import parity_probe
from parity_probe import native
from parity_probe.show import read_events
from parity_probe.torch_bits import torch_bits
from test_native import BLOCK, BUILT, ROOT, built, by_numpy, load, of, same_sketch, same_statistics  # noqa: F401
from test_stats_level import agree, values

COMPILE = "g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"


def test_where_it_is_missing_or_another_one(tmp_path, monkeypatch):
    """numpy does it, and nothing is said."""
    t = values("float32", (4000,))
    wanted = of(t)
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "a.cpp").write_text(f'extern "C" int parity_probe_interface() {{ return {native.INTERFACE + 1}; }}')
    (tmp_path / "b.cpp").write_text(f'extern "C" int parity_probe_interface() {{ return {native.INTERFACE}; }}')
    for name in "ab":
        subprocess.run([*COMPILE, tmp_path / f"{name}.cpp", "-o", tmp_path / f"{name}.so"], check=True)
    for path in ("", tmp_path / "missing.so", tmp_path / "text.so", tmp_path, tmp_path / "a.so", tmp_path / "b.so"):
        assert load(path, monkeypatch) is None
        raw = torch_bits(t)[:2]
        assert native.statistics(*raw) is None and native.sketch(*raw, 512) is None and native.words(*raw) is None
        agree(of(t), wanted)
        same_sketch(t)


def found_by(folder):
    """[is the library there?, the file that looked for it] for a process that has the package from `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop(native.VARIABLE)
    script = "from parity_probe import native; print(native.library() is not None, native.__file__)"
    return subprocess.run([os.sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout.split()


def test_it_is_found_beside_the_package(tmp_path):
    shutil.copytree(Path(parity_probe.__file__).parent, tmp_path / "parity_probe", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for there in (False, True):
        assert found_by(tmp_path) == [str(there), str(tmp_path / "parity_probe/native.py")]
        shutil.copy(BUILT, tmp_path / "parity_probe" / native.NAME)


@pytest.mark.parametrize("compiler, there", [(None, True), ("/no/compiler", False)])
def test_pip_builds_it_where_it_can(tmp_path, compiler, there):
    """… and installs the package all the same."""
    shutil.copytree(ROOT / "probes", tmp_path / "probes", ignore=shutil.ignore_patterns("*.so", "build", "*.egg-info"))
    environment = {**os.environ, **({"CC": compiler, "CXX": compiler} if compiler else {})}
    subprocess.run([os.sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--target", tmp_path / "site", tmp_path / "probes/python"],
                   env=environment, check=True)
    assert found_by(tmp_path / "site") == [str(there), str(tmp_path / "site/parity_probe/native.py")]


@pytest.mark.parametrize("level", ["stats", "sketch"])
def test_recordings_with_and_without(tmp_path, level):
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Dropout(0.), torch.nn.Linear(1024, 256)).eval(), torch.randn(2, 400, 256)

    def recorded(name):
        with torch.no_grad(), parity_probe.record(model, tmp_path / name, level=level):
            model(x)
        with h5py.File(tmp_path / name) as f:
            return [e for e in read_events(f) if e["e"] == "point"]
    for a, b in zip(recorded("with.h5"), by_numpy(recorded, "without.h5"), strict=True):
        assert list(a) == list(b) and {k: a[k] for k in ("path", "call", "role", "v", "d", "s")} == {k: b[k] for k in ("path", "call", "role", "v", "d", "s")}
        if level == "stats":
            agree(a["stats"], b["stats"], 1e-7)
        elif "sketch" in b:
            assert list(a["sketch"]) == list(b["sketch"]) and a["sketch"]["k"] == b["sketch"]["k"] and a["sketch"]["min"] == b["sketch"]["min"]


# --- the tests go red ----------------------------------------------------------------------------------------------------
def words_are_of_places():
    x = torch.randn(5, 4096)
    assert len({native.words("float32", torch_bits(t.contiguous())[1]) for t in (x, x.roll(1, 0), x.flip(0))}) == 3


FAULTS = [  # (file of the header, what stands there, what is wrong, the test that sees it)
    ("block_sums.hpp", "zeros -= all == nothing", "zeros -= all <= nothing", lambda: same_statistics(values("float32", (9000,), specials=True))),
    ("statistics.hpp", "step * step * before * share", "step * step * before", lambda: same_statistics(values("float32", (2 * BLOCK,)).sort().values)),
    ("elements.hpp", "std::uint32_t{raw} << 16", "std::uint32_t{raw & 0x7FFFU} << 16", lambda: same_statistics(values("bfloat16", (9000,)))),
    ("sketch_places.hpp", "hash >> 51", "hash >> 52", lambda: same_sketch(values("float32", (9000,)))),
    ("sketch_sums.hpp", "? 1 : x > 0 ? 3 : 5", "? 1 : 3", lambda: same_sketch(values("float32", (9000,), specials=True))),
    ("words.hpp", "hash_of(sums[0] + hash_of(number))", "sums[0] + number", words_are_of_places),
]


@pytest.mark.parametrize("file, there, wrong, seen_by", FAULTS, ids=[f"{f}: {w}" for f, _, w, _ in FAULTS])
def test_a_fault_in_it_is_seen(file, there, wrong, seen_by, tmp_path, monkeypatch):
    seen_by()
    shutil.copytree(ROOT / "probes/cpp/parity_probe", tmp_path / "parity_probe")
    text = (tmp_path / "parity_probe" / file).read_text()
    assert text.count(there) == 1
    (tmp_path / "parity_probe" / file).write_text(text.replace(there, wrong))
    subprocess.run([*COMPILE, "-I", tmp_path, ROOT / "probes/python/native/describe.cpp", "-o", tmp_path / "faulty.so"], check=True)
    assert load(tmp_path / "faulty.so", monkeypatch) is not None
    with pytest.raises(AssertionError):
        seen_by()
