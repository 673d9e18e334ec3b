"""What a killed or failing recording leaves behind: a file that can be read and replayed up to its last flush, and a model that was not disturbed."""
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time

import h5py
import pytest
import torch

from test_recorder_replay import one_thread, parity_probe, Replay, same  # noqa: F401
from test_recorder_traps import Fn

_ENV = {**os.environ, "PYTHONPATH": str(pathlib.Path(parity_probe.__file__).parents[1]), "OMP_NUM_THREADS": "1"}

# Forks one recording after another (importing torch each time would take longer than recording). Each says how many lines of its program are in the file, once
# a flush has put them there.
_KILLED = """
import os, sys, torch, parity_probe
from parity_probe import dump_file
dump_file.FLUSH_SECONDS = 0.03
torch._dynamo
flush, flushed = dump_file.DumpFile.flush, [0]
def reported(self):
    gathered = len(self._events)
    flush(self)
    flushed[0] += gathered
    os.write(1, f"flushed {flushed[0]}\\n".encode())
dump_file.DumpFile.flush = reported
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)
    def forward(self, x):
        return self.b(self.a(x).relu_() + x)
model = torch.nn.Sequential(*[Block() for _ in range(8)])
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.write(1, f"pid {os.getpid()}\\n".encode())
        with torch.no_grad(), parity_probe.record(model, line.strip(), level="op"):
            x = torch.randn(4, 16)
            while True:
                x = model(x)
    os.waitpid(pid, 0)
    print("gone", flush=True)
"""


def killed_recordings(folder, moments):
    """Kills recordings at (lines flushed, seconds after that); yields (file, lines that it said were flushed before it died)."""
    child = subprocess.Popen([sys.executable, "-c", _KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_ENV)
    try:
        for i, (enough, seconds) in enumerate(moments):
            path = folder / f"{i}.h5"
            child.stdin.write(f"{path}\n")
            child.stdin.flush()
            pid, flushed = None, 0
            for said, number in (line.split() for line in iter(child.stdout.readline, "gone\n")):
                if said == "pid":
                    pid = int(number)
                    continue
                flushed = int(number)
                if pid is not None and flushed >= enough:
                    time.sleep(seconds)
                    os.kill(pid, signal.SIGKILL)
                    pid = None
            yield path, flushed
    finally:
        child.stdin.close()
        child.wait(20)


def test_kill_leaves_a_file_that_replays(tmp_path):
    draw = random.Random(7)
    moments = [(draw.randrange(150, 800), draw.uniform(0, 0.05)) for _ in range(4)]
    for (enough, _), (path, flushed) in zip(moments, killed_recordings(tmp_path, moments)):
        r = Replay(path)
        assert r.file.attrs["complete"] == 0
        assert len(r.events) >= flushed >= enough  # what it said was there is there
        r.run()
        assert not r.wrong and r.checked > 20
    assert not list(tmp_path.glob(".*.tmp"))


def test_an_older_file_survives_until_something_is_recorded(tmp_path):
    path, model, x = tmp_path / "a.h5", torch.nn.Linear(2, 2), torch.ones(1, 2)
    with parity_probe.record(model, path):
        model(x)
    old = path.read_bytes()
    with pytest.raises(parity_probe.Error, match="nothing was recorded"):
        with parity_probe.record(model, path):
            pass
    with pytest.raises(ZeroDivisionError):
        with parity_probe.record(model, path):
            1 / 0
    assert path.read_bytes() == old
    with h5py.File(path, "r"):  # whoever reads the old one keeps it
        with parity_probe.record(model, path):
            model(x + 1)
    assert path.read_bytes() != old and list(tmp_path.iterdir()) == [path]


_FULL = """
import resource, sys, warnings, torch, parity_probe
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(40)])
x = torch.randn(16, 64)
plain = model(x)
warnings.simplefilter("ignore")
try:
    with parity_probe.record(model, sys.argv[1]):
        out = model(x)
        print(torch.equal(out, plain))
except parity_probe.Error as e:
    print(str(e))
    import torch.nn as nn
    print(nn.Module.__call__ is nn.Module._wrapped_call_impl)
"""


def test_a_full_disk_gives_one_error_and_the_model_runs_on(tmp_path):
    path = tmp_path / "a.h5"
    done = subprocess.run([sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True, env=_ENV, timeout=100)
    lines = done.stdout.splitlines()
    assert lines[0] == "True" and lines[2] == "True" and len(lines) == 3, done.stdout + done.stderr
    assert str(path) in lines[1] and "/values/" in lines[1]
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    r = Replay(path)
    assert r.file.attrs["complete"] == 0 and not r.run().wrong


def test_low_space_is_found_before_hdf5_meets_it(tmp_path, monkeypatch):
    real = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda path: type("S", (), {"f_bavail": 1100, "f_frsize": 4096})() if str(path).startswith(str(tmp_path)) else real(path))
    model, x = torch.nn.Linear(1000, 1000), torch.ones(1, 1000)
    with pytest.warns(UserWarning, match="recording stopped"), pytest.raises(parity_probe.Error, match=r"a\.h5.*/values/.*no space left"):
        with parity_probe.record(model, tmp_path / "a.h5"):
            out = model(x)
    assert same(out, model(x))
    assert Replay(tmp_path / "a.h5").file.attrs["complete"] == 0


def test_a_fault_in_the_recorder_never_reaches_the_model(tmp_path, monkeypatch):
    from parity_probe import program
    def broken(*a):
        raise ValueError("seeded")
    for name in ("before_op", "after_op", "begin_call", "end_call"):
        with monkeypatch.context() as patch:
            patch.setattr(program.Program, name, broken)
            model, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
            with pytest.warns(UserWarning, match="seeded"), pytest.raises(parity_probe.Error, match="ValueError: seeded"):
                with parity_probe.record(model, tmp_path / "a.h5"):
                    out = model(x)
        assert same(out, model(x))


@pytest.mark.parametrize("bad, error, words", [
    (lambda d: (3, d / "a.h5", "op"), TypeError, "nn.Module"),
    (lambda d: (torch.nn.Linear(1, 1), d / "a.h5", "sketchy"), ValueError, "level"),
    (lambda d: (torch.nn.Linear(1, 1), d / "no" / "a.h5", "op"), parity_probe.Error, "no folder"),
    (lambda d: (torch.nn.Linear(1, 1), d, "op"), parity_probe.Error, "is a folder")])
def test_bad_arguments(tmp_path, bad, error, words):
    with pytest.raises(error, match=words):
        parity_probe.record(*bad(tmp_path))


def test_calls_on_other_threads_are_not_mixed_in(tmp_path):
    import threading
    model, x = Fn(lambda m, x: x + 1), torch.ones(2)
    with parity_probe.record(model, tmp_path / "a.h5"):
        model(x)
        t = threading.Thread(target=lambda: model(x))
        t.start()
        t.join()
    assert sum(e["e"] == "call" for e in Replay(tmp_path / "a.h5").events) == 1


_UNCLOSED = {
    "Writer": "w = parity_probe.Writer(path)\nw.write('x', 1.0)",
    "Writer in a function": "def f():\n    parity_probe.Writer(path).write('x', 1.0)\nf()",
    "record": "r = parity_probe.record(torch.nn.Linear(3, 3), path)\nr.__enter__()\nr.model(torch.ones(1, 3))",
}


@pytest.mark.parametrize("name", _UNCLOSED)
def test_a_program_that_ends_without_closing(tmp_path, name):
    """Nothing is lost and nothing crashes, but the file does not say that it is complete."""
    code = f"import sys, torch, parity_probe\npath = sys.argv[1]\n{_UNCLOSED[name]}\nsys.exit(3)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.h5")], capture_output=True, text=True, env=_ENV, timeout=100)
    assert done.returncode == 3 and not done.stderr
    with h5py.File(tmp_path / "a.h5") as f:
        assert f.attrs["complete"] == 0 and len(f["values"]) == (4 if name == "record" else 1)


def test_after_a_failure_nothing_is_recorded_unnoticed(tmp_path, monkeypatch):
    """A tensor too large for the disk is left out: the smaller ones behind it must not make a recording that calls itself complete."""
    real, room = os.statvfs, 1 << 40
    monkeypatch.setattr(os, "statvfs", lambda path: type("S", (), {"f_bavail": room, "f_frsize": 1})() if str(path).startswith(str(tmp_path)) else real(path))
    w = parity_probe.Writer(tmp_path / "a.h5")
    w.write("x", 1.0)
    room = 0
    with pytest.raises(parity_probe.Error, match="no space left"):
        w.write("y", 1.0)
    room = 1 << 40
    for call in (lambda: w.write("z", 1.0), w.flush, w.close, lambda: w.note(a=1)):
        with pytest.raises(parity_probe.Error, match=r"/values/1 .*no space left"):
            call()
    with h5py.File(tmp_path / "a.h5") as f:
        assert f.attrs["complete"] == 0 and set(f["values"]) == {"0"} and f["trace/events"].size > 0
