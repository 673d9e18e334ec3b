"""A disk that is full: a small one of its own (tmpfs, where this user may mount one) and a limit on the size of files, for the model recorder, the Python
Writer and the C++ Writer. The model runs on with the same numbers, the error is one line that says what to do, and what the file holds is right."""
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

import killed
from test_recorder_killed import port  # noqa: F401
from test_recorder_replay import Replay

_RECORDED = """
import sys, warnings, numpy as np, torch, parity_probe
from parity_probe import dump_file
path, kind, route = sys.argv[1:]
dump_file.FLUSH_SECONDS = 0.002
if route == "limit":
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
if route == "disk to the brim":
    dump_file.RESERVE = 0
torch.manual_seed(0)
model, x = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(40)]), torch.ones(16, 256)
plain = model(x)
warnings.simplefilter("error" if kind == "writer" else "ignore")
try:
    if kind == "model":
        with parity_probe.record(model, path):
            print(torch.equal(model(x), plain))
    else:
        with parity_probe.Writer(path) as w:
            for k in range(1000):
                try:
                    w.write("x", np.full((100, 100), k, "f4"))
                except parity_probe.Error:
                    break
            print(k < 900)
except parity_probe.Error as e:
    print(e)
"""


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 8 MiB."""
    if os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk; the limit on file sizes is tried all the same")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def recorded(path, kind, route, port):
    """The lines that the recording program prints: did the model run on; the error."""
    mode = {"limit": "full", "disk": "disk", "disk to the brim": "disk-to-the-brim"}[route]
    command = [port, mode, path] if kind == "C++" else [sys.executable, "-c", _RECORDED, path, kind, route]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=killed.ENV, timeout=100)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def check_contents(path, kind):
    """What reached the file is right."""
    if kind == "model":
        replay = Replay(path)
        assert not replay.run().wrong
        return
    lines, _, complete = killed.load(path)
    assert complete == 0 and len(lines) > 10
    events = [killed.json.loads(line) for line in lines]
    with h5py.File(path, "r") as f:
        for number, e in enumerate(events):
            if e["path"] in ("x", "large"):
                x = f["values"][e["k"]][()]
                assert np.array_equal(x, np.full(x.shape, 3 if e["path"] == "large" else number, "f4"))


def check(path, kind, route, port):
    goes_on, error = recorded(path, kind, route, port)
    assert goes_on in ("True", "1")
    assert error.startswith(f"{path}: cannot write dataset /values/") or error.startswith(f"{path}: cannot "), error
    assert ("File too large" if route == "limit" else "o space left on device") in error
    assert error.endswith("; free some space or record to another disk: what is in the file stays readable")
    check_contents(path, kind)
    status, _, err = killed.ask("inspect", "--verify", "--quiet", path)
    assert status == 1 and [line for line in err.splitlines() if not line.startswith("note:")] == [
        f"{path}: the recording is incomplete: it was interrupted, or an exception left it"]
    status, out, err = killed.ask("compare", path, path)
    assert (status in (0, 3) and f"{path}: the recording was interrupted; only what it holds is compared" in out) or (
        status == 2 and err.count("\n") == 1 and "holds no tensor" in err), (status, out, err)


@pytest.mark.parametrize("kind", ["model", "writer", "C++"])
def test_a_limit_on_file_sizes(tmp_path, port, kind):
    check(tmp_path / "a.h5", kind, "limit", port)


@pytest.mark.parametrize("route", ["disk", "disk to the brim"])
@pytest.mark.parametrize("kind", ["model", "writer", "C++"])
def test_a_small_disk(small_disk, port, kind, route):
    check(small_disk / "a.h5", kind, route, port)
