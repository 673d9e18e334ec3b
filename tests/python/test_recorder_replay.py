"""An independent replayer, written from probes/FORMAT.md with h5py alone: it runs a recorded program from its leaves and must meet every stored value bit by bit.

It is the oracle of the other recorder tests and shares no code with the recorder.
"""
import json
import pathlib
import sys

import h5py
import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "probes" / "python"))
import parity_probe  # noqa: E402

@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors run faster so, and other tests keep their own number. Import it to use it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


_CARRIER = {"bfloat16": (np.uint16, torch.int16), "float8_e4m3fn": (np.uint8, torch.uint8), "float8_e5m2": (np.uint8, torch.uint8)}


def load(dataset, restore_strides=True):
    """A stored tensor, bit by bit, in the strides it had."""
    name = dataset.attrs["dtype"]
    name = name.decode() if isinstance(name, bytes) else name
    dtype = getattr(torch, name)
    if name in _CARRIER:
        carrier, view = _CARRIER[name]
        bits = np.empty(dataset.shape, carrier)
        if bits.size:
            dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, bits, mtype=dataset.id.get_type())
        t = torch.from_numpy(bits.view({2: np.int16, 1: np.uint8}[bits.itemsize])).view(view).view(dtype)
    else:
        t = torch.from_numpy(np.array(dataset[()])).to(dtype)
    return placed(t, dataset.attrs) if restore_strides and t.numel() else t


def placed(t, attributes):
    """`t`, row-major, where FORMAT.md says that it lay: its strides, and its address modulo 64. A storage of its own, as a leaf has."""
    strides = next((tuple(int(s) for s in attributes[name]) for name in ("strides", "loose_strides") if name in attributes), t.stride())
    own = tuple(1 if s == 0 else n for n, s in zip(t.shape, strides))
    elements = 1 + sum((n - 1) * s for n, s in zip(own, strides))
    memory = np.zeros(elements * t.element_size() + 64, np.uint8)
    begin = (int(attributes.get("misalignment", [0])[0]) - memory.ctypes.data) % 64
    row = torch.frombuffer(memory, dtype=torch.uint8, count=elements * t.element_size(), offset=begin).view(t.dtype)
    row.as_strided(own, strides).copy_(t.as_strided(own, t.stride()))
    placed = row.as_strided(tuple(t.shape), strides)
    assert same(placed, t)  # elements that share memory are equal
    return placed


def same(a, b):
    """Bitwise equality; NaNs count by their bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = (x.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).view(-1) for x in (a, b))
    if a.numel() == 0:
        return True
    return bool((a.view(torch.uint8) == b.view(torch.uint8)).all()) if a.dtype != torch.bool else bool((a == b).all())


def read_events(file):
    """The events; of an interrupted file those up to the last whole line, and none behind a gap (a NUL byte: FORMAT.md)."""
    data = file["trace/events"][()].tobytes().split(b"\0")[0]
    end = data.rfind(b"\n") + 1
    return [json.loads(line) for line in data[:end].split(b"\n") if line]


class Replay:
    """Runs events; `checked` counts values compared, `wrong` lists those that differ."""

    def __init__(self, path, restore_alias=True):
        self.file = h5py.File(path, "r", locking=False)
        self.events, self.values, self.checked, self.wrong, self.alias = read_events(self.file), {}, 0, [], restore_alias

    def stored(self, key):
        return load(self.file["values"][key])

    def decode(self, a):
        if isinstance(a, list):
            return [self.decode(x) for x in a]
        if not isinstance(a, dict):
            return a
        (kind, x), = a.items()
        if kind == "v":
            return self.values[x]
        if kind in ("dtype", "layout", "memory_format"):
            return getattr(torch, x)
        if kind == "device":
            return torch.device(x)
        if kind == "float":
            return float(x)
        if kind == "complex":
            return complex(*self.decode(x))
        if kind == "generator":
            return None
        raise AssertionError(f"unknown argument {a}")

    def check(self, value, what):
        if value is None or "k" not in value:
            return
        self.checked += 1
        mine = self.values.get(value["v"])
        if mine is None or list(mine.shape) != value["s"] or not same(mine, self.stored(value["k"])):
            self.wrong.append(what)

    def leaf(self, e):
        if "alias" in e and self.alias:
            base = self.values[e["alias"]["v"]]
            self.values[e["v"]] = base.as_strided(e["s"], e["alias"]["stride"], e["alias"]["offset"])
            if e["k"] is not None:
                self.check(e, ("alias leaf", e["v"]))
        else:
            self.values[e["v"]] = self.stored(e["k"])

    def take(self, value):
        """Opaque: the stored value, into the memory that was written to where the tensor exists already."""
        if value is None:
            return
        if value["v"] in self.values and list(self.values[value["v"]].shape) == value["s"]:
            self.values[value["v"]].copy_(self.stored(value["k"]))
        else:
            self.values[value["v"]] = self.stored(value["k"])

    def op(self, e):
        if e.get("opaque", "uninitialised") != "uninitialised":
            for value in e["out"] + e.get("writes", []):
                self.take(value)
            return
        name, _, overload = e["op"].partition(".")
        space, base = name.split("::")
        op = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
        out = op(*self.decode(e["args"]), **{k: self.decode(v) for k, v in e["kwargs"].items()})
        out = flat(out)
        assert len(out) == len(e["out"]), e
        for value, t in zip(e["out"], out):
            if value is not None:
                self.values[value["v"]] = t
                if "opaque" not in e:
                    self.check(value, (e["op"], value["v"]))
        for value in e.get("writes", []):
            self.check(value, (e["op"], value["v"]))

    def run(self):
        before = torch.is_grad_enabled()
        try:
            return self.run_events()
        finally:
            torch.set_grad_enabled(before)

    def run_events(self):
        grads = [False]
        for e in self.events:
            if e["e"] == "call":
                grads.append(e["grad"])
            elif e["e"] == "ret":
                grads.pop()
            torch.set_grad_enabled(grads[-1])
            if e["e"] == "leaf":
                self.leaf(e)
            elif e["e"] == "op":
                self.op(e)
            elif e["e"] == "call":
                for v in e["inputs"]:
                    self.check(v, ("input", e["path"], v["n"]))
            elif e["e"] == "ret":
                for v in e["outputs"]:
                    self.check(v, ("output", e["id"], v["n"]))
            elif e["e"] == "point":
                self.check(e, ("point", e["path"]))
        return self


def flat(x):
    if isinstance(x, (list, tuple)):
        return [t for y in x for t in flat(y)]
    return [x]


def replay(path, **options):
    """Runs the recording at `path`; every stored value must be met bitwise, and there must be some."""
    r = Replay(path, **options).run()
    assert r.checked > 0 and not r.wrong, f"{len(r.wrong)} of {r.checked} differ, first {r.wrong[:3]}"
    return r


def tiny_wan(kind="SkyReelsV2Transformer3DModel", dtype=torch.float32):
    import diffusers
    torch.manual_seed(0)
    model = getattr(diffusers, kind)(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=4, text_dim=16, freq_dim=32,
                                     ffn_dim=64, num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32).to(dtype).eval()
    inputs = dict(hidden_states=torch.randn(1, 4, 2, 8, 8).to(dtype), timestep=torch.tensor([3]), encoder_hidden_states=torch.randn(1, 6, 16).to(dtype))
    return model, inputs


@pytest.mark.parametrize("level", ["op", "module"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["SkyReelsV2Transformer3DModel", "WanTransformer3DModel"])
def test_diffusers_transformers(tmp_path, kind, dtype, level):
    model, inputs = tiny_wan(kind, dtype)
    with torch.no_grad():
        plain = model(**inputs).sample
        with parity_probe.record(model, tmp_path / "a.h5", level=level):
            recorded = model(**inputs).sample
    assert same(plain, recorded)
    replay(tmp_path / "a.h5")
