"""Recordings of level sketch: against FORMAT.md's definition in exact integers, by every recorder, over shards, and the self test's pairs through them."""
import json
import math
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from test_cpp_probe import port, run, verify  # noqa: F401
from test_recorder_replay import one_thread, parity_probe, read_events  # noqa: F401

from parity_probe import sketch, sketch_files
import program

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "reference_dumps/selftest"
STATISTICS = ("count", "nan", "inf", "zero", "specials", "fits")


def oracle(numbers, buckets):
    """FORMAT.md, number by number, in Python's integers and exact sums."""
    mask, terms = (1 << 64) - 1, [[] for _ in range(buckets)]
    for i, x in enumerate(numbers):
        z = (i * 0x9E3779B97F4A7C15 + 0x7061726974792D31) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        if math.isfinite(x):
            terms[(z >> 51) % buckets].append(-x if z >> 63 else x)
    return np.array([math.fsum(t) for t in terms])


def points(path):
    f = h5py.File(path, "r")
    return f, {(e["path"], e["call"], e["role"]): e for e in read_events(f) if e["e"] == "point"}


def compare(a, b, folder, *more):
    """(exit status, report)"""
    out = folder / "report.json"
    done = program.run("compare", a, b, "--json", out, "--quiet", "--threads", "1", *more)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(out.read_text())


def written(path, **arrays):
    with parity_probe.Writer(path, level="sketch") as w:
        for name, array in arrays.items():
            w.write(name, array)
    return path


# --- the definition ------------------------------------------------------------------------------------------------------
def test_python_agrees_with_the_definition():
    x = np.random.default_rng(0).normal(size=140000)   # more than a block
    for buckets in (1, 512, 4096):
        assert abs(sketch.sketch(x, buckets=buckets).buckets - oracle(x, buckets)).max() < 1e-12
    assert [sketch.buckets_for(n) for n in (0, 1000, 2**19, 2**19 + 2**18, 2**20, 2**21, 10**10)] == [512, 512, 1024, 1024, 2048, 4096, 4096]


DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int64", "uint8", "bool", "complex64", "complex128"]


@pytest.mark.parametrize("name", DTYPES)
def test_cpp_and_python_agree(tmp_path, name):
    """The program sketches the full recording on the fly; what it finds between that and Python's sketch is the rounding of the sums."""
    torch.manual_seed(0)
    t = (torch.randn(60, 80, dtype=torch.float64) * 20)
    t = torch.complex(t, -t).to(getattr(torch, name)) if name.startswith("complex") else t > 0 if name == "bool" else t.to(getattr(torch, name))
    if t.is_floating_point() and name != "float8_e4m3fn":
        t[3, 4], t[5, 6] = float("nan"), float("-inf")
    for other in (t, t.t()):
        with parity_probe.Writer(tmp_path / "full.h5") as w:
            w.write("x", other)
        raw = sketch_files._Recording(tmp_path / "full.h5")
        (_, _, _, _, value), = raw.points()
        numbers = sketch.numbers(*raw.bits(value))
        assert abs(raw.sketch(value, 64).buckets - oracle(numbers[1](numbers[0]).tolist(), 64)).max() <= 1e-13 * np.sqrt(raw.sketch(value).sum_squares)
        sketch_files.convert(tmp_path / "full.h5", tmp_path / "sketch.h5", buckets=256)
        for pair in (("full.h5", "sketch.h5"), ("sketch.h5", "full.h5"), ("sketch.h5", "sketch.h5")):
            status, report = compare(tmp_path / pair[0], tmp_path / pair[1], tmp_path)
            assert status == 0 and report["ops"][0]["free"]["rel_l2"] < 1e-14 and report["ops"][0]["free"]["special_mismatch"] == 0
    assert verify(tmp_path / "sketch.h5") == (0, [])


def test_the_cpp_probe_agrees(port, tmp_path):  # noqa: F811
    run(port, "sketches", tmp_path / "a.h5")
    assert verify(tmp_path / "a.h5") == (0, [])
    sketch_files.convert(tmp_path / "a.h5.full", tmp_path / "b.h5")
    (f, mine), (g, python) = points(tmp_path / "a.h5"), points(tmp_path / "b.h5")
    assert f.attrs["level"] == "sketch" and mine.keys() == python.keys() and len(mine) == 13
    for key, e in mine.items():
        p = python[key]
        assert (e["d"], e["s"], "k" in e) == (p["d"], p["s"], "k" in p), key
        if "sketch" in e:
            a, b = e["sketch"], p["sketch"]
            assert {k: a[k] for k in STATISTICS} == {k: b[k] for k in STATISTICS}, key
            for k in ("sum", "sum_squares", "min", "max"):
                assert a[k] == pytest.approx(b[k], rel=1e-12, abs=1e-9), (key, k)
            x, y = f["values"][a["k"]][()], g["values"][b["k"]][()]
            assert x.shape == y.shape and np.linalg.norm(x - y) <= 1e-13 * np.linalg.norm(y), key
    assert len(f["values"][mine["weight", 0, "weight"]["sketch"]["k"]]) == 32 and "k" in mine["small", 0, "output"]
    sketch_files.merge([f"{tmp_path / 'a.h5'}.rank{r}" for r in range(4)], tmp_path / "whole.h5")
    h, whole = points(tmp_path / "whole.h5")
    total, e = h["values"][whole["f32", 0, "output"]["sketch"]["k"]][()], mine["f32", 0, "output"]["sketch"]
    assert np.linalg.norm(total - f["values"][e["k"]][()]) < 1e-13 * np.linalg.norm(total)


# --- shards --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_four_shards_along_any_axis(axis, dtype):
    x = np.random.default_rng(axis).normal(size=(8, 12, 100)).astype(dtype)
    whole, size = sketch.sketch(x), x.shape[axis] // 4
    parts = [sketch.sketch(np.take(x, range(i * size, (i + 1) * size), axis), (axis, i * size, x.shape[axis])) for i in range(4)]
    every_fourth = []
    for i in range(4):
        part = np.take(x, range(i, x.shape[axis], 4), axis)
        every_fourth.append(sketch.sketch(part, sketch.Place(part.shape, x.shape, [i * (a == axis) for a in range(3)], [1 + 3 * (a == axis) for a in range(3)])))
    for one in (parts, every_fourth):
        total = one[0] + one[1] + one[2] + one[3]
        assert abs(total.buckets - whole.buckets).max() < 1e-13 * np.sqrt(whole.sum_squares)
        assert (total.count, total.zero, total.min, total.max) == (whole.count, whole.zero, whole.min, whole.max)
        assert total.sum_squares == pytest.approx(whole.sum_squares, rel=1e-13)


def test_shards_of_shards():
    x = np.random.default_rng(0).normal(size=(40, 60, 50))
    parts = [sketch.sketch(x[a:a + 20, :, b:b + 25], [(0, a, 40), (2, b, 50)]) for a in (0, 20) for b in (0, 25)]
    assert abs(sum(p.buckets for p in parts) - sketch.sketch(x).buckets).max() < 1e-12


def test_a_tensor_parallel_layer(tmp_path):
    """up split by columns (its output's last axis), down by rows (its input's last axis), on 4 ranks; the ranks' files add up to the whole model's."""
    torch.manual_seed(0)
    up, down, x = torch.randn(256, 64), torch.randn(64, 256), torch.randn(100, 64)
    full = tmp_path / "full.h5"
    with parity_probe.Writer(full) as w:
        w.write("up", up, role="weight")
        w.write("down", down, role="weight")
        w.write("up", x @ up.t())
        w.write("", (x @ up.t()) @ down.t())
    for rank in range(4):
        rows = slice(rank * 64, rank * 64 + 64)
        with parity_probe.Writer(tmp_path / f"rank{rank}.h5", level="sketch") as w:
            w.write("up", up[rows], role="weight", shard=(0, rank * 64, 256))
            w.write("down", down[:, rows], role="weight", shard=(1, rank * 64, 256))
            w.write("up", x @ up[rows].t(), shard=(1, rank * 64, 256))
            w.write("", (x @ up.t()) @ down.t())    # after the all-reduce every rank has it
    ranks = [str(tmp_path / f"rank{r}.h5") for r in range(4)]
    subprocess.run(["python", "-m", "parity_probe", "sketch", *ranks, "-o", str(tmp_path / "whole.h5")], check=True,
                   env=dict(os.environ, PATH=f"{Path(os.sys.executable).parent}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "probes/python")))
    assert verify(tmp_path / "whole.h5") == (0, [])
    status, report = compare(full, tmp_path / "whole.h5", tmp_path)
    assert status == 0 and report["counts"]["pass"] == 4 and {o["path"] for o in report["ops"]} == {"weights/up", "weights/down", "up", ""}
    with pytest.raises(parity_probe.Error, match="12288 of 16384 numbers"):
        sketch_files.merge([ranks[0], ranks[1], ranks[3]], tmp_path / "less.h5")
    with pytest.raises(parity_probe.Error, match="overlap"):
        sketch_files.merge([ranks[0], *ranks], tmp_path / "more.h5")
    done = program.run("compare", full, ranks[0])
    assert done.returncode == 2 and "add up the recordings" in done.stderr


def test_parts_that_cannot_be(tmp_path):
    with parity_probe.Writer(tmp_path / "a.h5", level="sketch") as w, pytest.raises(ValueError, match="does not lie"):
        w.write("x", np.zeros((4, 5)), shard=(1, 6, 10))
    with parity_probe.Writer(tmp_path / "b.h5") as w, pytest.raises(ValueError, match="level sketch"):
        w.write("x", np.zeros((4, 5)), shard=(1, 5, 10))
    with pytest.raises(ValueError, match="level"):
        parity_probe.Writer(tmp_path / "c.h5", level="op")


# --- recording -----------------------------------------------------------------------------------------------------------
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))
        self.norm = torch.nn.LayerNorm(256)
        self.fault = None

    def forward(self, x):
        y = self.layers(x)
        return self.norm(x + (self.fault(y) if self.fault else y)), y[0]


def recorded(model, x, path, level="sketch"):
    with torch.no_grad(), parity_probe.record(model, path, level=level):
        return model(x)


def test_recording_a_torch_model(tmp_path):
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 3000, 256)
    with torch.no_grad():
        want = model(x)
    for level in ("module", "sketch"):
        got = recorded(model, x, tmp_path / f"{level}.h5", level)
        assert all(torch.equal(a, b) for a, b in zip(want, got))
    assert os.path.getsize(tmp_path / "sketch.h5") < .01 * os.path.getsize(tmp_path / "module.h5")
    f, found = points(tmp_path / "sketch.h5")
    assert {(p, r) for p, _, r in found} == {("x", "input"), ("layers.0", "output"), ("layers.1", "output"), ("layers.2", "output"), ("layers", "output"),
                                             ("norm", "output"), ("", "output"), ("[1]", "output")} | {(n, "weight") for n in model.state_dict()}
    assert found["layers.1", 0, "output"]["class"] == "GELU" and len(f["weights"]) == 0
    weights = [e for (_, _, role), e in found.items() if role == "weight"]
    assert all("k" not in e and len(f["values"][e["sketch"]["k"]]) <= e["sketch"]["count"] / 2 for e in weights)
    assert verify(tmp_path / "sketch.h5") == (0, [])
    for a, b in (("module", "sketch"), ("sketch", "module"), ("sketch", "sketch")):
        status, report = compare(tmp_path / f"{a}.h5", tmp_path / f"{b}.h5", tmp_path)
        assert status == 0 and len(report["ops"]) == len(found) and report["counts"]["pass"] == len(found)


@pytest.mark.parametrize("fault, words", [(lambda y: -y, "other sign"), (lambda y: y * 1.01, "1.01 times"), (lambda y: y.roll(1, 1), "other places")])
def test_a_fault_is_found_where_it_is(tmp_path, fault, words):
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 300, 256)
    recorded(model, x, tmp_path / "ref.h5")
    layers, forward = model.layers, model.layers.forward
    layers.forward = lambda x: fault(forward(x))
    recorded(model, x, tmp_path / "cand.h5")
    status, report = compare(tmp_path / "ref.h5", tmp_path / "cand.h5", tmp_path)
    assert status == 1 and report["first_divergence"]["path"] == "layers" and words in report["first_divergence"]["diagnosis"]
    op = next(o for o in report["ops"] if o["path"] == "layers")
    assert op["free"]["rel_l2"] > 0 and all(op["free"][k] is None for k in ("max_abs", "mean_abs", "p99_abs", "max_ulp", "bitwise_equal_share", "cosine"))
    assert "cannot tell" in " ".join(report["warnings"])


class Masked(torch.nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.layer, self.keep = torch.nn.Linear(32, 32), keep

    def forward(self, x, mask):
        y = self.layer(x) * mask
        return y, (y > 0) == self.keep


@pytest.mark.parametrize("rows", [40, 4000])   # stored whole, sketched
@pytest.mark.parametrize("levels", [("sketch", "sketch"), ("module", "sketch"), ("sketch", "module")])
def test_a_returned_mask_is_compared(tmp_path, rows, levels):
    x, mask = torch.randn(rows, 32), torch.arange(rows)[:, None] % 3 > 0
    for name, keep, level in (("ref", True, levels[0]), ("same", True, levels[1]), ("turned", False, levels[1])):
        torch.manual_seed(0)
        model = Masked(keep).eval()
        with torch.no_grad(), parity_probe.record(model, tmp_path / f"{name}.h5", level=level):
            model(x, mask if name != "same" else mask.long())   # a port's mask of numbers is another tensor
    assert compare(tmp_path / "ref.h5", tmp_path / "same.h5", tmp_path)[0] == 0
    status, report = compare(tmp_path / "ref.h5", tmp_path / "turned.h5", tmp_path)
    assert status == 1 and [op["path"] for op in report["ops"] if op["verdict"] == "fail"] == ["[1]"]


def test_other_inputs_and_weights_are_named(tmp_path):
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 300, 256)
    recorded(model, x, tmp_path / "ref.h5")
    recorded(model, x + .1 * torch.randn_like(x), tmp_path / "input.h5")
    assert compare(tmp_path / "ref.h5", tmp_path / "input.h5", tmp_path)[1]["first_divergence"]["path"] == "inputs/0/x"
    with torch.no_grad():
        model.layers[2].weight[:] = model.layers[2].weight.flip(0)
    recorded(model, x, tmp_path / "weight.h5")
    first = compare(tmp_path / "ref.h5", tmp_path / "weight.h5", tmp_path)[1]["first_divergence"]
    assert first["path"] == "weights/layers.2.weight" and "same numbers in other places" in first["diagnosis"]


def test_a_map_and_another_layout(tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 40)).astype("f4")
    with parity_probe.Writer(tmp_path / "full.h5") as w:
        w.write("a", x)
    written(tmp_path / "turned.h5", b=x.T)
    written(tmp_path / "same.h5", a=x)
    (tmp_path / "map").write_text("a = b perm(1,0)\n")
    assert compare(tmp_path / "full.h5", tmp_path / "turned.h5", tmp_path, "--map", str(tmp_path / "map"))[0] == 0
    status, report = compare(tmp_path / "same.h5", tmp_path / "turned.h5", tmp_path, "--map", str(tmp_path / "map"))
    assert status == 3 and report["ops"][0]["verdict"] == "untrusted" and "layout" in report["ops"][0]["diagnosis"]
    (tmp_path / "map").write_text("a = b\n")
    assert compare(tmp_path / "full.h5", tmp_path / "turned.h5", tmp_path, "--map", str(tmp_path / "map"))[1]["ops"][0]["verdict"] == "shape"


def test_values_outside_level_sketch_are_measured_whole(tmp_path):
    x = np.arange(10.0)
    written(tmp_path / "a.h5", x=x)
    written(tmp_path / "b.h5", x=x * (1 + 1e-16))
    status, report = compare(tmp_path / "a.h5", tmp_path / "b.h5", tmp_path)
    assert status == 0 and report["ops"][0]["free"]["bitwise_equal_share"] == 1
