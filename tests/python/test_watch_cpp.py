"""parity-check watch and a C++ program (tests/probe/stream_port.cpp) that streams to it through probes/cpp/parity_probe.hpp."""
import functools
import re
import signal
import threading
import time

import pytest
import torch
from stream_port import SECONDS, Steps, ended, lines_so_far, settled, start  # noqa: F401  a fixture
from test_watch import Watch, reference, streams, watch  # noqa: F401  fixtures
from watched_port import FAULTY, gpt2

import parity_probe


def gpt2_steps(folder, fault=False, wait=None):
    """GPT-2's outputs in the order in which they arise, and one weight; `fault`: as watched_port.py puts it in."""
    model, ids = gpt2()
    if fault:
        model.get_submodule(FAULTY).weight.data.mul_(1.05)
    steps = Steps(folder).tensor("transformer.wte.weight", model.transformer.wte.weight, "weight")

    def take(name, _, __, out):
        if isinstance(out, torch.Tensor):
            steps.tensor(name, out)

    def pause(*_):
        steps.add(*[f"wait {wait}"] * bool(wait))

    for name, module in model.named_modules():
        if name and not isinstance(module, torch.nn.ModuleList):
            module.register_forward_hook(functools.partial(take, name))
    model.transformer.h[2].register_forward_pre_hook(pause)
    with torch.no_grad():
        model(ids)
    return steps


def next_line(process):
    """What it says next; a process that says nothing is ended, so that the test is red and not endless."""
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        return process.stdout.readline()
    finally:
        guard.cancel()


def test_a_healthy_port_passes(watch, start, tmp_path):
    w = watch()
    assert ended(start(w.address, gpt2_steps(tmp_path))) == (0, "", "")
    status, out, err = w.end()
    report = w.report()
    assert status == 0, out + err
    assert "first divergence so far" not in out and not streams(report)
    assert report["counts"]["pass"] > 30 and report["candidate"]["producer"] == "stream_port" and report["candidate"]["path"] == w.address


def test_a_fault_is_told_while_the_port_still_runs(watch, start, tmp_path):
    w = watch()
    port = start(w.address, gpt2_steps(tmp_path, fault=True, wait=tmp_path / "go"))
    assert next_line(w.process).startswith(f"first divergence so far: {FAULTY}: ")
    assert port.poll() is None
    (tmp_path / "go").touch()
    assert port.wait(SECONDS) == 0
    status, out, err = w.end()
    assert status == 1, out + err
    assert w.report()["first_divergence"]["path"] == FAULTY and not streams(w.report())


def test_stop_stops_the_port(watch, start, tmp_path):
    w = watch("--stop")
    port = start(w.address, gpt2_steps(tmp_path, fault=True, wait=tmp_path / "go"))
    assert FAULTY in next_line(w.process)
    (tmp_path / "go").touch()
    status, said, err = ended(port)
    assert (status, err) == (7, "") and f"\nstopped at {FAULTY} because " in said
    status, out, err = w.end()
    assert status == 1, out + err
    assert w.report()["first_divergence"]["path"] == FAULTY and "told to stop" in streams(w.report())[0]["diagnosis"]


@pytest.mark.parametrize("fault, expected", [(False, 3), (True, 1)])
def test_a_killed_port_leaves_a_partial_report(watch, start, tmp_path, fault, expected):
    w = watch()
    port = start(w.address, gpt2_steps(tmp_path, fault, wait=tmp_path / "never"))
    assert next_line(port) == "waiting\n"
    if fault:
        assert FAULTY in next_line(w.process)
    port.kill()
    status, out, err = w.end()
    report = w.report()
    assert status == expected, out + err
    assert report["schema"] == "parity-report/1" and report["counts"]["pass"] > 10
    assert streams(report)[0]["verdict"] == "untrusted" and "connection ended" in streams(report)[0]["diagnosis"]


@pytest.mark.parametrize("busy", [False, True])
def test_a_killed_watch_is_one_line(watch, start, tmp_path, busy):
    """While the program computes, and while it waits for a watch that does not read."""
    w, lines = watch(), []
    steps = Steps(tmp_path).add(*([f"big 4 {8 << 20}", "until-error"] if busy else ["typed", "until-error"]))
    if busy:
        w.process.send_signal(signal.SIGSTOP)
    port = start(w.address, steps)
    reader = lines_so_far(port, lines)
    if busy:
        assert settled(lambda: len(lines)) == 0
    else:
        time.sleep(.3)
    assert port.poll() is None
    w.process.kill()
    w.process.wait()
    assert port.wait(SECONDS) == 2
    reader.join()
    assert lines[-1] == "went on without recording\n"
    assert re.fullmatch(rf"{w.address}: parity-check watch (has ended|is gone \(.*\)); nothing more is sent: start it and this program again\n", port.stderr.read())


class Cast(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        return x.to(self.dtype, copy=True)


class Casts(torch.nn.Module):
    """A value of every dtype that ports are made of, but for masks, which are not compared."""

    def __init__(self):
        super().__init__()
        self.to_fp16, self.to_bf16, self.to_fp32, self.to_int64 = (Cast(d) for d in (torch.float16, torch.bfloat16, torch.float32, torch.int64))

    def forward(self, x):
        return self.to_fp16(x), self.to_bf16(x), self.to_fp32(x), self.to_int64(x * 100)


@pytest.mark.parametrize("flip", [False, True])
def test_every_dtype_arrives_bit_by_bit(start, tmp_path, flip):
    """All rows are bitwise equal, and none is once the last bit of one of its 1200 elements is another. A bool among the inputs is taken like any other."""
    torch.manual_seed(3)
    model, x = Casts(), torch.randn(40, 30)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5"):
        values = model(x)
    steps, w = Steps(tmp_path).tensor("mask", x > 0, "input"), Watch(tmp_path / "ref.h5", tmp_path / "out")
    for (name, _), value in zip(model.named_children(), values):
        steps.tensor(name, value, flip=flip)
    try:
        assert ended(start(w.address, steps)) == (0, "", "")
        said = w.end()
    finally:
        w.process.kill()
    assert said[0] in (0, 1, 3), said
    shares = {op["path"]: (op["tensor_dtype"], op["forced"]["bitwise_equal_share"]) for op in w.report()["ops"] if op["candidate_path"]}
    assert shares == {f"to_{dtype}": (dtype, pytest.approx(1 - flip / 1200, abs=1e-9)) for dtype in ("fp16", "bf16", "fp32", "int64")}
