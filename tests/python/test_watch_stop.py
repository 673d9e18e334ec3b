"""parity-check watch --stop: what it must not stop (a port that runs in chunks, sample by sample, for the last token alone), and how soon it stops the others."""
import functools
import signal
import time

import parity_probe
import pytest
import torch
from stream_port import Steps, ended, start  # noqa: F401  a fixture
from test_watch import Watch, streams
from watched_port import FAULTY, gpt2

CALLS = 8  # of the reference: 1.4 MB


def tensors_of(model):
    return [(name, module) for name, module in model.named_modules() if name and not isinstance(module, torch.nn.ModuleList)]


def run_calls(model, ids):
    for call in range(CALLS):
        model(ids.roll(call, 1))


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Recordings of one call, and of several."""
    folder = tmp_path_factory.mktemp("stop")
    model, ids = gpt2()
    for name, run in (("one", lambda: model(ids)), ("several", lambda: run_calls(model, ids))):
        with torch.no_grad(), parity_probe.record(model, folder / f"{name}.h5"):
            run()
    return folder


@pytest.fixture
def watch(once, tmp_path):
    started = []

    def begin(reference="one", *options):
        started.append(Watch(once / f"{reference}.h5", tmp_path / "out", "--stop", *options))
        return started[-1]
    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def stream(address, run, fault="", change=lambda name, value: value):
    """Streams what `run(model, ids)` computes; what stopped it (None: nothing), and how many tensors were written."""
    model, ids = gpt2()
    if fault:
        model.get_submodule(fault).weight.data.mul_(1.05)
    written = 0

    def send(name, _, __, out):
        nonlocal written
        if isinstance(out, torch.Tensor):
            writer.write(name, change(name, out))
            written += 1

    try:
        with torch.no_grad(), parity_probe.Writer(address, producer="in_parts") as writer:
            for name, module in tensors_of(model):
                module.register_forward_hook(functools.partial(send, name))
            run(model, ids)
    except parity_probe.Stopped as stop:
        return stop, written
    return None, written


def whole(model, ids):
    model(ids)
    time.sleep(2)  # so that all of it is judged before the port says that it is done


def in_samples(model, ids):
    for sample in ids.split(1):
        model(sample)


def in_chunks(model, ids):
    cache = model(ids[:, :6], use_cache=True).past_key_values
    model(ids[:, 6:], past_key_values=cache, use_cache=True)


def last_token(name, value):
    return value[:, -1:] if name == "lm_head" else value


RIGHT = {"samples": (in_samples, lambda _, value: value), "chunks": (in_chunks, lambda _, value: value), "last token": (whole, last_token)}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_port_in_parts_is_not_stopped(watch, name):
    run, change = RIGHT[name]
    w = watch()
    stop, _ = stream(w.address, run, change=change)
    status, out, err = w.end()
    assert stop is None and status == 0, (stop, out, err)
    assert "first divergence" not in out and not streams(w.report())


def test_a_fault_beside_the_last_token_alone_is_stopped(watch):
    w = watch("several")
    stop, written = stream(w.address, run_calls, FAULTY, last_token)
    status, out, err = w.end()
    assert stop is not None and stop.path == FAULTY and status == 1, (stop, out, err)


def test_another_width_is_stopped(watch):
    w = watch("several")
    stop, _ = stream(w.address, run_calls, change=lambda name, value: value[..., :40] if name == "transformer.h.1.ln_1" else value)
    assert stop is not None and stop.path == "transformer.h.1.ln_1" and "shape differs" in stop.diagnosis, stop
    assert w.end()[0] == 1


def test_a_fast_port_is_stopped_with_the_diagnosis_of_the_report(watch):
    w = watch("several")
    stop, written = stream(w.address, run_calls, FAULTY)
    status, out, err = w.end()
    assert stop is not None and stop.path == FAULTY and status == 1, (written, out, err)
    assert written < 60, written  # of 304; the fault is in the 17th, and the port is let 32 ahead
    assert f"first divergence so far: {FAULTY}: {stop.diagnosis}\n" in out
    assert stop.diagnosis == w.report()["first_divergence"]["diagnosis"] and "scale" in stop.diagnosis, stop


def test_a_fast_port_in_cpp_is_stopped(watch, start, tmp_path):
    model, ids = gpt2()
    model.get_submodule(FAULTY).weight.data.mul_(1.05)
    steps = Steps(tmp_path)

    def take(name, _, __, out):
        if isinstance(out, torch.Tensor):
            steps.tensor(name, out)

    for name, module in tensors_of(model):
        module.register_forward_hook(functools.partial(take, name))
    with torch.no_grad():
        run_calls(model, ids)
    w = watch("several")
    status, said, err = ended(start(w.address, steps))
    assert (status, err) == (7, "") and f"stopped at {FAULTY} because " in said
    assert w.end()[0] == 1


def test_a_watch_that_nothing_connected_to_says_so(watch):
    w = watch()
    w.process.send_signal(signal.SIGINT)
    status, _, err = w.end()
    assert status == 2 and f"nothing connected to {w.address}" in err and err.count("\n") == 1, err
