"""probes/cpp/parity_probe.hpp: a plain C++ program (tests/probe/port.cpp) records itself; what it leaves is read by h5py, numpy and parity-check."""
import json
import os
import shutil
import signal
import subprocess
import time
from math import erf
from pathlib import Path

import h5py
import ml_dtypes  # noqa: F401  numpy learns bfloat16 and float8
import numpy as np
import pytest

from test_recorder_replay import parity_probe, read_events

from parity_probe import element_types
import program

ROOT = Path(__file__).resolve().parents[2]
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", f"-I{ROOT / 'probes/cpp'}"]


def flags(kind):
    return subprocess.run(["pkg-config", kind, "hdf5"], capture_output=True, text=True, check=True).stdout.split()


def build(source, program, *options, compiler="g++"):
    """Compiles a program that records itself. Several files of tests use the same one: with ccache, where it is, only the first waits for it (11 s)."""
    cache, made = ["ccache"] if shutil.which("ccache") else [], f"{program}.o"
    subprocess.run([*cache, compiler, *STRICT, *options, *flags("--cflags"), "-c", str(source), "-o", made], check=True)
    subprocess.run([compiler, made, "-o", str(program), *flags("--libs"), "-pthread"], check=True)
    return program


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    return build(ROOT / "tests/probe/port.cpp", tmp_path_factory.mktemp("port") / "port", "-O2")


def run(port, mode, path, **more):
    done = subprocess.run([str(port), mode, str(path)], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, done.stderr
    return done


def verify(path):
    """(exit status, problems) of inspect --verify."""
    done = program.run("inspect", "--verify", "--quiet", path)
    return done.returncode, done.stderr.splitlines()


def points(path):
    f = h5py.File(path, "r")
    return f, [e for e in read_events(f) if e["e"] == "point"]


def array(f, point):
    name, values = element_types.read_bits(f["values"][point["k"]])
    assert name == point["d"] and list(values.shape) == point["s"]
    return values


# --- compiling ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", ["g++", "clang++-14"])
def test_every_header_compiles_alone(tmp_path, compiler, standard):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    headers = [ROOT / "probes/cpp/parity_probe.hpp", *sorted((ROOT / "probes/cpp/parity_probe").glob("*.hpp"))]
    for header in headers if (compiler, standard) == ("g++", "c++17") else headers[:1]:  # what one of them does not include is missing for any compiler
        (tmp_path / "a.cpp").write_text(f'#include "{header}"\n')
        subprocess.run([compiler, *STRICT, f"-std={standard}", *flags("--cflags"), "-fsyntax-only", str(tmp_path / "a.cpp")], check=True)


def test_two_files_of_one_program_may_include_it(tmp_path):
    for name, more in (("a", "int main() { other(); }"), ("b", "")):
        (tmp_path / f"{name}.cpp").write_text('#include "parity_probe.hpp"\nvoid other();\n' + (more or "void other() { parity::probe::Writer w; w.note(\"x\"); }"))
    subprocess.run(["g++", *STRICT, *flags("--cflags"), str(tmp_path / "a.cpp"), str(tmp_path / "b.cpp"), "-o", str(tmp_path / "ab"), *flags("--libs"), "-pthread"], check=True)
    subprocess.run([str(tmp_path / "ab")], check=True)


# --- what it writes -----------------------------------------------------------------------------------------------------
def test_a_model_records_itself(port, tmp_path):
    run(port, "model", tmp_path / "a.h5")
    assert verify(tmp_path / "a.h5") == (0, [])
    f, found = points(tmp_path / "a.h5")
    v = {(p["path"], p["call"]): array(f, p).astype("f8") for p in found}
    w = {name: f["weights"][name][()].astype("f8") for name in f["weights"]}
    assert set(w) == {"block.norm.weight", "block.norm.bias", "block.up.weight", "block.down.weight"} and f.attrs["complete"] == 1
    for call in (0, 1):  # the same block, computed here from the recorded weights
        x = v["block.x", call]
        normed = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w["block.norm.weight"] + w["block.norm.bias"]
        up = normed @ w["block.up.weight"].T
        gelu = np.vectorize(lambda u: 0.5 * u * (1 + erf(u / 2**0.5)))(up)
        down = gelu @ w["block.down.weight"].T
        for name, wanted in {"block.norm": normed, "block.up": up, "block.gelu": gelu, "block.down": down, "block": down + x}.items():
            np.testing.assert_allclose(v[name, call], wanted, rtol=1e-4, atol=1e-5)
    assert np.array_equal(v["block.x", 1], v["block", 0])
    about = json.loads(f.attrs["provenance"])
    assert about["config"] == {"dim": 8} and "port model" in about["command"] and f.attrs["model"] == "Block" and f.attrs["producer"].startswith("parity_probe.hpp")
    assert read_events(f)[-2:] == [{"e": "note", "text": ""}, {"e": "note", "text": 'two "calls"\n\ufffd'}]
    assert [p["role"] for p in found[:5]] == ["weight"] * 4 + ["input"]


def test_types_bits_and_names_are_those_of_the_python_writer(port, tmp_path):
    run(port, "dtypes", tmp_path / "a.h5")
    assert verify(tmp_path / "a.h5") == (0, [])
    f, found = points(tmp_path / "a.h5")
    raw = ((37 * np.arange(16 * 24) + 11) % 256).astype(np.uint8)
    dtypes = found[:16]
    assert len({p["d"] for p in dtypes}) == 16
    with parity_probe.Writer(tmp_path / "b.h5") as w:
        for p in dtypes:
            size = element_types.carrier(p["d"]).itemsize
            kind = np.dtype(getattr(ml_dtypes, p["d"], None) or p["d"])
            w.write(p["path"], raw[:24 * size].view(kind).reshape(2, 3, 4))
        w.write("bool", np.array([True, False, True]))
    g, theirs = points(tmp_path / "b.h5")
    for ours, python in zip(found[:17], theirs):
        assert (ours["path"], ours["d"], ours["s"]) == (python["path"], python["d"], python["s"])
        assert array(f, ours).tobytes() == array(g, python).tobytes(), ours["path"]
        assert f["values"][ours["k"]].id.get_type() == g["values"][python["k"]].id.get_type(), ours["path"]
    rest = {p["path"]: p for p in found[17:]}
    assert rest["scalar"]["s"] == [] and array(f, rest["scalar"]) == 1 and rest["empty"]["s"] == [0, 4]
    assert np.array_equal(array(f, rest["vector"]), np.full((2, 3), 7)) and rest["vector"]["d"] == "int64"
    assert set(f["weights"]) == {"a%2Fb", "%2E"}


def test_strides(port, tmp_path):
    run(port, "strides", tmp_path / "a.h5")
    assert verify(tmp_path / "a.h5") == (0, [])
    f, found = points(tmp_path / "a.h5")
    v = {p["path"]: (array(f, p), f["values"][p["k"]].attrs.get("strides")) for p in found}
    x = v["plain"][0]
    for name, wanted, strides in (("plain", x, None), ("turned", x.T, [1, 4, 12]), ("part", x[:, :, 1::2], None), ("wide", np.tile(x[0, 0], (5, 1)), None),
                                  ("backwards", x.reshape(-1)[::-1], None), ("ones", x[:1, 0, :, None], None)):
        assert np.array_equal(v[name][0], wanted), name
        assert (v[name][1] is None) if strides is None else list(v[name][1]) == strides, name


def test_statistics_only(port, tmp_path):
    run(port, "statistics", tmp_path / "a.h5")
    run(port, "model", tmp_path / "b.h5")
    assert verify(tmp_path / "a.h5") == (0, [])
    f, found = points(tmp_path / "a.h5")
    assert f.attrs["level"] == "stats" and len(f["values"]) == 0 and all("k" not in p for p in found)
    stats = {p["path"]: p["stats"] for p in found}
    g, whole = points(tmp_path / "b.h5")
    for p in whole:
        if p["path"].startswith("block.") and p["role"] != "weight" and p["call"] == 0:
            x, s = array(g, p).astype("f8"), stats[p["path"]]
            assert (s["count"], s["nan"], s["inf"], s["zero"]) == (x.size, 0, 0, (x == 0).sum())
            np.testing.assert_allclose([s["mean"], s["std"], s["mean_abs"], s["min"], s["max"]], [x.mean(), x.std(), abs(x).mean(), x.min(), x.max()], rtol=1e-12, atol=1e-15)
    assert stats["odd"] == {"count": 7, "nan": 2, "inf": 2, "zero": 1, "mean": pytest.approx(-1 / 3), "std": pytest.approx(np.std([1, -2, 0])), "mean_abs": 1, "min": -2, "max": 1}
    assert stats["empty"] == {"count": 0, "nan": 0, "inf": 0, "zero": 0, "mean": None, "std": None, "mean_abs": None, "min": None, "max": None}
    assert (stats["half"]["nan"], stats["half"]["inf"], stats["half"]["min"], stats["half"]["mean"]) == (1, 1, -2, pytest.approx((-1 + 2**-24) / 3))
    assert (stats["e4m3"]["nan"], stats["e4m3"]["inf"], stats["e4m3"]["max"], stats["e4m3"]["mean"]) == (1, 0, 448, pytest.approx((447 + 2**-9) / 4))
    assert stats["whole"]["mean"] == 0.5 and stats["complex"]["max"] == 5


# --- what it survives ---------------------------------------------------------------------------------------------------
def check_forever(path):
    """Value k is filled with k; returns how many there are."""
    f, found = points(path)
    assert f.attrs["complete"] == 0
    for number, p in enumerate(found):
        assert np.array_equal(array(f, p), np.full((10, 10), number, "f4"))
        assert (p["role"] == "weight") == (number % 7 == 0)
    return len(found)


_KILL_AT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static long left = -1;
static ssize_t counted(const char* name, int file, const void* data, size_t size, off_t at) {
  if (left < 0) left = atol(getenv("KILL_AT"));
  if (left-- == 0) raise(SIGKILL);
  ssize_t (*real)(int, const void*, size_t, off_t) = dlsym(RTLD_NEXT, name);
  return real(file, data, size, at);
}
ssize_t pwrite(int file, const void* data, size_t size, off_t at) { return counted("pwrite", file, data, size, at); }
ssize_t pwrite64(int file, const void* data, size_t size, off_t at) { return counted("pwrite64", file, data, size, at); }
"""


def test_kill_at_every_third_write(port, tmp_path):
    """A kill between the last, changed blocks of a flush tears the file, microseconds apart as they are: 2 of these 67 places. Without the order of Disk::settle 16 do."""
    (tmp_path / "kill.c").write_text(_KILL_AT)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "kill.so"), str(tmp_path / "kill.c"), "-ldl"], check=True)
    torn = []
    for place in range(400, 600, 3):
        path = tmp_path / f"{place}.h5"
        environment = {**os.environ, "LD_PRELOAD": str(tmp_path / "kill.so"), "KILL_AT": str(place)}
        assert subprocess.run([str(port), "forever", str(path)], env=environment).returncode == -signal.SIGKILL
        try:
            check_forever(path)
        except (OSError, KeyError, RuntimeError):
            torn.append(place)
    assert len(torn) <= 6, torn


def test_what_recording_costs_a_model(port, tmp_path):
    """Processor time of a small model (64 KiB a tensor, 4 MFLOP each) with and without recording; measured 0.6 to 1.1 on a busy machine: less than its noise, so only a gross cost is caught."""
    seconds = json.loads(run(port, "ratio", tmp_path / "a.h5").stdout)
    print({kind: round(seconds[kind] / seconds["off_s"], 2) for kind in ("on_s", "statistics_s")})
    assert seconds["on_s"] < 2 * seconds["off_s"] and seconds["statistics_s"] < 2 * seconds["off_s"], seconds


def test_a_growing_file_can_be_read(port, tmp_path):
    """At three moments; one of them may lie inside a flush, where a reader has to look again (1 of 20 single looks on a machine with 8 busy processes)."""
    child, counts = subprocess.Popen([str(port), "forever", str(tmp_path / "a.h5")]), []
    try:
        for _ in range(3):
            time.sleep(0.3)
            child.send_signal(signal.SIGSTOP)   # a copy takes time: without this it holds the file of several moments at once
            shutil.copy(tmp_path / "a.h5", tmp_path / "b.h5")
            try:
                counts.append(check_forever(tmp_path / "b.h5"))
            except (OSError, KeyError, RuntimeError):
                pass
            child.send_signal(signal.SIGCONT)
    finally:
        child.kill()
        child.wait()
    assert len(counts) >= 2 and counts == sorted(counts) and counts[-1] > 20, counts


def test_a_full_disk_stops_the_recording_and_not_the_model(port, tmp_path):
    lines = run(port, "full", tmp_path / "a.h5").stdout.splitlines()
    assert lines[0] == "1" and "a.h5: cannot write dataset /values/" in lines[1] and "File too large" in lines[1] and len(lines) == 2
    f, found = points(tmp_path / "a.h5")
    assert f.attrs["complete"] == 0 and all(array(f, p).size for p in found)
    assert verify(tmp_path / "a.h5")[0] == 1


def test_low_space_is_found_before_hdf5_meets_it(port, tmp_path):
    assert "no space left on device" in run(port, "room", tmp_path / "a.h5").stderr
    f, found = points(tmp_path / "a.h5")
    assert f.attrs["complete"] == 0 and found == []


def test_an_exception_leaves_an_incomplete_file(port, tmp_path):
    run(port, "thrown", tmp_path / "a.h5")
    f, found = points(tmp_path / "a.h5")
    assert f.attrs["complete"] == 0 and len(found) == 6


def test_a_forked_child_does_not_write(port, tmp_path):
    assert run(port, "forked", tmp_path / "a.h5").stdout == "0\n"
    assert verify(tmp_path / "a.h5") == (0, [])
    assert len(points(tmp_path / "a.h5")[1]) == 12


def test_threads(port, tmp_path):
    run(port, "threads", tmp_path / "a.h5")
    f, found = points(tmp_path / "a.h5")
    assert sorted(p["call"] for p in found if p["path"] == "shared") == list(range(600)) and len(found) == 1200
    for p in found:
        values = array(f, p)
        assert (values == values[0]).all() and (p["path"] == "shared" or values[0] == float(p["path"][-1]))
    assert verify(tmp_path / "a.h5") == (0, [])


def test_refusals_are_clear(port, tmp_path):
    lines = run(port, "refusals", tmp_path / "a.h5").stdout.splitlines()
    words = ["null pointer", "negative size", "strides of another rank", "impossible size", "is closed", "/nonexistent/folder/a.h5: cannot be made: No such file", "/tmp: is a folder"]
    assert len(lines) == len(words) and all(word in line for word, line in zip(words, lines)), lines


def test_an_older_file_is_replaced_at_once_and_whoever_reads_it_keeps_it(port, tmp_path):
    path = tmp_path / "a.h5"
    run(port, "dtypes", path)
    with h5py.File(path, "r") as old:
        run(port, "model", path)
        assert "a%2Fb" in old["weights"] and old["weights"]["a%2Fb"][0] == 1
    assert "block.up.weight" in h5py.File(path, "r")["weights"] and list(tmp_path.iterdir()) == [path]


def test_off_costs_nothing_and_the_queue_is_bounded(port, tmp_path):
    figures = json.loads(run(port, "cost", tmp_path / "a.h5").stdout)
    print(figures)
    assert figures["off_ns"] < 50       # 2 to 4 measured on a machine with 8 busy processes for 2 cores
    assert figures["peak_mib"] < 700    # 1 GiB passed through a queue of 256 MiB
    assert len(points(tmp_path / "a.h5")[1]) == 10_064
    (tmp_path / "a.h5").unlink()
