"""The oracle must go red: faults are seeded into recordings (drop an op, alter an id) and into the recorder (forget to copy, mistake identities)."""
import json

import h5py
import numpy as np
import pytest
import torch

from test_recorder_models import gpt2
from test_recorder_replay import one_thread, parity_probe, read_events, Replay, replay, tiny_wan  # noqa: F401
from test_recorder_traps import Fn


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "a.h5"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the tests themselves: another number of threads gives other bits
    model, inputs = tiny_wan()
    with torch.no_grad(), parity_probe.record(model, path):
        model(**inputs)
    torch.set_num_threads(threads)
    return path


def is_red(path, change):
    """True when the replay of the changed events finds a difference or cannot run."""
    r = Replay(path)
    r.events = change([json.loads(json.dumps(e)) for e in r.events])
    try:
        return bool(r.run().wrong)
    except (KeyError, RuntimeError, AssertionError, TypeError, IndexError):
        return True


def test_unchanged_is_green(recording):
    assert not is_red(recording, lambda events: events)


def test_each_dropped_op_is_seen(recording):
    """Except those whose result nothing uses."""
    events = read_events(h5py.File(recording, "r"))
    used = {n for e in events for n in json.dumps([e.get("args"), e.get("kwargs"), e.get("outputs"), e.get("inputs")]).replace("}", ",").split('"v": ')[1:]
            for n in [int(n.split(",")[0])]}
    places = [i for i, e in enumerate(events) if e["e"] == "op" and any(v and v["v"] in used for v in e["out"])]
    assert len(places) > 200
    for i in places[::24]:
        assert is_red(recording, lambda events, i=i: events[:i] + events[i + 1:]), events[i]


def test_altered_ids_and_literals_are_seen(recording):
    def swap(name, change):
        def apply(events):
            e = next(e for e in events if e["e"] == "op" and e["op"] == name)
            change(e)
            return events
        return is_red(recording, apply)
    assert swap("aten::addmm", lambda e: e["args"].__setitem__(0, {"v": e["args"][0]["v"] + 2}))
    assert swap("aten::native_layer_norm", lambda e: e["args"].__setitem__(4, 1e-3))
    assert swap("aten::gelu", lambda e: e["kwargs"].clear())


def test_in_place_made_out_of_place_is_seen(tmp_path):
    def f(m, x):
        y = x * 2
        half = y[:1]
        y.mul_(3)
        return half + 0
    m = Fn(f)
    with parity_probe.record(m, tmp_path / "a.h5"):
        m(torch.ones(2))

    def change(events):
        next(e for e in events if e.get("op") == "aten::mul_.Tensor")["op"] = "aten::mul.Tensor"
        return events
    assert not is_red(tmp_path / "a.h5", lambda events: events) and is_red(tmp_path / "a.h5", change)


def test_one_flipped_bit_is_seen(recording, tmp_path):
    copy = tmp_path / "b.h5"
    copy.write_bytes(recording.read_bytes())
    with h5py.File(copy, "r+") as f:
        key = [v["k"] for e in read_events(f) if e["e"] == "op" and e["op"] == "aten::addmm" for v in e["out"]][3]
        values = f["values"][key][()]
        values.view(np.uint32).reshape(-1)[1] ^= 1
        f["values"][key][...] = values
    assert Replay(copy).run().wrong


def test_a_recorder_that_takes_values_late_is_seen(tmp_path, monkeypatch):
    """The fault: a value is kept by reference and written at the end."""
    from parity_probe import dump_file
    late, write = [], dump_file.DumpFile.value
    monkeypatch.setattr(dump_file.DumpFile, "value", lambda self, *a: late.append((self, a)))
    monkeypatch.setattr(dump_file.DumpFile, "link", lambda self, *a: None)
    close = dump_file.DumpFile.close

    def write_all(self, complete=True):
        for _, a in late:
            write(self, *a)
        close(self, complete)
    monkeypatch.setattr(dump_file.DumpFile, "close", write_all)

    def f(m, x):
        y = x * 2
        y.add_(1)
        return y
    with parity_probe.record(Fn(f), tmp_path / "a.h5"):
        Fn(f)
        Fn(f)
        m = Fn(f)
        parity_probe.point("x", f(m, torch.ones(3)))
    assert Replay(tmp_path / "a.h5").run().wrong


def test_a_recorder_that_misses_an_in_place_write_is_seen(tmp_path, monkeypatch):
    from parity_probe import program

    def f(m, x):
        y = x * 2
        y.add_(1)
        return y
    monkeypatch.setattr(program.Program, "_count_writes", lambda self, *a: None)
    m = Fn(f)
    with parity_probe.record(m, tmp_path / "a.h5"):
        m(torch.ones(3))
    assert Replay(tmp_path / "a.h5").run().wrong


# Identities: what weak references say must be what keeping every tensor alive says.

def runs():
    def wan():
        model, inputs = tiny_wan()
        def run():
            with torch.autocast("cpu", torch.bfloat16):  # the autocast cache holds cast weights whose Python objects have died
                model(**inputs)
        return model, run

    def generate():
        model = gpt2()
        return model, lambda: model.generate(torch.tensor([[5, 6]]), max_new_tokens=3, do_sample=False, pad_token_id=0)

    def bases():
        def f(m, x):
            v = torch.ones(3, 4).t()[1:]   # only the view lives on
            for _ in range(50):
                torch.zeros(3, 4) + 1      # would take a freed address at once
            v.add_(x)
            v._base.mul_(2)                # the base comes back
            m.saved = torch.nn.functional.silu(v)
            w = m.saved.t()
            del m.saved
            return w._base + 0 if w._base is not None else w
        model = Fn(f)
        return model, lambda: model(torch.ones(1))
    return {"wan": wan, "generate": generate, "bases": bases}


def programs(tmp_path, name, monkeypatch, change):
    from parity_probe import identity
    out = []
    for i in range(2):
        model, run = runs()[name]()
        with monkeypatch.context() as patch:
            if i:
                change(patch, identity.ValueTable)
            with parity_probe.record(model, tmp_path / f"{name}{i}.h5", level="module"):
                run()
        with h5py.File(tmp_path / f"{name}{i}.h5", "r") as f:
            out.append(read_events(f))
    return out


def keep_everything(patch, table):
    kept, add = [], table.add
    patch.setattr(table, "add", lambda self, t, as_leaf: (kept.append(t), add(self, t, as_leaf))[1])


def trust_addresses(patch, table):
    """The fault: a tensor is its address."""
    patch.setattr(table, "_forget", lambda self, address: None)
    patch.setattr(table, "find", lambda self, t: self._values.get(id(t)))


def canonical(events):
    """The events with ids numbered by appearance and `detach` seen through: PyTorch detaches a result that somebody else refers to, so keeping tensors adds some."""
    numbers = {}

    def rename(x):
        if isinstance(x, list):
            return [rename(y) for y in x]
        if isinstance(x, dict):
            return {k: numbers.setdefault(y, len(set(numbers.values()))) if k == "v" else rename(y) for k, y in x.items() if k != "k"}
        return x
    out = []
    for e in events:
        if e.get("op") in ("aten::detach", "aten::alias"):
            numbers[e["out"][0]["v"]] = numbers[e["args"][0]["v"]]
        else:
            out.append(rename(e))
    return out


@pytest.mark.parametrize("name", ["wan", "generate", "bases"])
def test_weak_identities_equal_kept_ones(tmp_path, monkeypatch, name):
    weak, kept = programs(tmp_path, name, monkeypatch, keep_everything)
    assert canonical(weak) == canonical(kept)
    replay(tmp_path / f"{name}0.h5")


def test_identity_by_address_would_be_seen(tmp_path, monkeypatch):
    weak, faulty = programs(tmp_path, "generate", monkeypatch, trust_addresses)
    assert canonical(weak) != canonical(faulty)


def test_nothing_is_kept_alive(tmp_path):
    """Peak memory of a long chain must not grow with its length."""
    import gc
    import weakref
    seen = []

    def f(m, x):
        for _ in range(20):
            x = x + 1
            seen.append(weakref.ref(x))
        return x
    m = Fn(f)
    with parity_probe.record(m, tmp_path / "a.h5"):
        out = m(torch.ones(3))
        gc.collect()
        assert sum(r() is not None for r in seen) == 1
    assert out is seen[-1]()
