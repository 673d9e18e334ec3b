"""Recordings of level stats: every number against plain numpy in float64, the C++ header's against Python's, and that recording disturbs nothing."""
import subprocess

import h5py
import ml_dtypes
import numpy as np
import pytest
import torch

from test_cpp_probe import build, verify
from test_recorder_replay import one_thread, parity_probe, read_events  # noqa: F401

from parity_probe import blocks, sketch, stats, torch_stats

COUNTS, NUMBERS = ("count", "nan", "inf", "zero"), ("mean", "std", "mean_abs", "min", "max")
FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
DTYPES = FLOATS + ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]


def oracle(x):
    """FORMAT.md in plain numpy, of an array in float64, complex128 or integers."""
    magnitudes = np.iscomplexobj(x)
    x = np.abs(x) if magnitudes else x.astype(np.float64)
    finite = x[np.isfinite(x)]
    found = {"complex": magnitudes, "count": x.size, "nan": int(np.isnan(x).sum()), "inf": int(np.isinf(x).sum()), "zero": int((finite == 0).sum())}
    if not finite.size:
        return {**found, **dict.fromkeys(NUMBERS)}
    return {**found, "mean": finite.mean(), "std": finite.std(), "mean_abs": np.abs(finite).mean(), "min": finite.min(), "max": finite.max()}


def wide(t):
    """A tensor as numpy in float64 (complex128, integers), by torch's own conversion."""
    if t.dtype.is_complex:
        return t.resolve_conj().resolve_neg().to(torch.complex128).numpy()
    return (t.float() if t.dtype.itemsize == 1 and t.is_floating_point() else t).double().numpy() if t.is_floating_point() else t.numpy()


def agree(found, wanted, tolerance=1e-12):
    """Counts and extremes to the bit; means relative to the mean magnitude, as they may cancel."""
    assert {k: found[k] for k in COUNTS} == {k: wanted[k] for k in COUNTS}
    if wanted["mean"] is None:
        assert all(found[k] is None for k in NUMBERS)
        return
    scale = max(wanted["mean_abs"], wanted["std"], 1e-300)
    for name in ("min", "max"):   # the magnitude of a complex number is rounded
        assert found[name] == wanted[name] or wanted.get("complex") and found[name] == pytest.approx(wanted[name], rel=1e-15), (name, found, wanted)
    for name in ("mean", "std", "mean_abs"):
        assert abs(found[name] - wanted[name]) <= tolerance * scale, (name, found, wanted)


def values(name, shape, seed=0, specials=False):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=g, dtype=torch.float64) * 5 + 1
    if name.startswith("complex"):
        return torch.complex(x, -2 * x.flip(0) + 1).to(getattr(torch, name))
    if name == "bool":
        return x > 0
    t = (x.abs() if name.startswith("uint") else x).to(getattr(torch, name))
    if specials and t.numel() > 4:
        flat = t.view(-1)
        flat[0], flat[1] = float("nan"), 0.0
        if name != "float8_e4m3fn":
            flat[2], flat[-1] = float("-inf"), float("inf")
    return t


def of(array):
    return stats.describe(array, "x").get("stats")


def written(path, **arrays):
    with parity_probe.Writer(path, level="stats") as w:
        for name, array in arrays.items():
            w.write(name, array)
    return points(path)


def points(path):
    with h5py.File(path, "r") as f:
        assert len(f["values"]) == 0 and f.attrs["level"] == "stats" and f.attrs["complete"] == 1
        found = [e for e in read_events(f) if e["e"] == "point"]
    assert not any("k" in e for e in found)
    return {(e["path"], e["call"], e["role"]): e for e in found}


# --- the numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", DTYPES)
def test_every_type_against_numpy(tmp_path, name):
    for specials in (False, True) if name in FLOATS else (False,):
        t = values(name, (30, 41), specials=specials)
        numpy = t.view(torch.uint8 if t.element_size() == 1 else torch.int16).numpy().view(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else t.numpy()
        found = written(tmp_path / "a.h5", torch=t, numpy=numpy)
        for kind in ("torch", "numpy"):
            e = found[kind, 0, "output"]
            assert (e["d"], e["s"]) == (name, [30, 41])
            agree(e["stats"], oracle(wide(t)))
    assert verify(tmp_path / "a.h5") == (0, [])


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16", "float16", "int32", "bool", "complex64"])
def test_many_blocks(name):
    """More numbers than are looked at at once, whose rows are added up in float32 where that is good enough: to 1e-7 of the magnitude."""
    for size in (blocks.BLOCK, 3 * blocks.BLOCK + 70001):
        t = values(name, (size,), specials=name in FLOATS)
        agree(of(t), oracle(wide(t)), 1e-12 if name in ("float64", "int32", "bool", "complex64") else 1e-7)


@pytest.mark.parametrize("offset, scale", [(0, 1), (1e4, 1), (-1e6, 1e-3), (0, 1e-30), (3, 1e30), (1e-38, 1e-40), (0, 1e38)])
def test_what_float32_sums_cannot_do(offset, scale):
    """Means far from 0, where squares cancel, and magnitudes whose squares float32 has not."""
    x = (offset + scale * np.random.default_rng(0).uniform(-1, 1, 2 * blocks.BLOCK)).astype(np.float32)
    wanted, found = oracle(x), of(x)
    agree(found, wanted, 1e-7)
    assert found["std"] == pytest.approx(wanted["std"], rel=1e-6) and found["mean_abs"] == pytest.approx(wanted["mean_abs"], rel=1e-7)


def test_what_float64_squares_cannot_do():
    x = np.array([1e308, 1e308, 1.5e308])
    found = of(x)
    assert found["mean"] == pytest.approx(1e308 * (3.5 / 3)) and found["std"] is None and found["max"] == 1.5e308
    ramp = 1e9 + np.arange(1000.0)
    agree(of(ramp), oracle(ramp))
    assert of(ramp)["std"] == pytest.approx(np.sqrt((1000**2 - 1) / 12), rel=1e-12)
    constant = np.full(blocks.BLOCK + 5, .1, np.float32)
    assert {k: of(constant)[k] for k in NUMBERS} == {"mean": float(np.float32(.1)), "std": 0.0, "mean_abs": float(np.float32(.1)), "min": float(np.float32(.1)), "max": float(np.float32(.1))}


def test_empty_scalar_and_nothing_finite():
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        assert of(torch.empty(0, 3, dtype=dtype)) == {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(NUMBERS)}
        agree(of(torch.ones((), dtype=dtype)), oracle(np.ones(())))
    assert of(np.array(-0.0)) == {"count": 1, "nan": 0, "inf": 0, "zero": 1, "mean": 0.0, "std": 0.0, "mean_abs": 0.0, "min": 0.0, "max": 0.0}
    assert of(torch.tensor([float("nan"), float("inf"), float("-inf")])) == {"count": 3, "nan": 1, "inf": 2, "zero": 0, **dict.fromkeys(NUMBERS)}


def test_zeros_among_many():
    for name in ("float32", "bfloat16", "float64"):
        t = values(name, (blocks.BLOCK + 100,))
        t[::7], t[1] = 0.0, -0.0
        assert of(t)["zero"] == int((wide(t) == 0).sum()) > blocks.BLOCK / 8


def test_layouts():
    """Transposed, with gaps, expanded, channels last, conjugated: the elements of the tensor, each once, wherever they lie."""
    t = values("float32", (40, 50, 30))
    for view in (t, t.permute(2, 0, 1), t[:, ::3], t[1:, 5:, :7], t[:1, :, :1].expand(40, 50, 30), t.unsqueeze(0).contiguous(memory_format=torch.channels_last), t[:, :, None, :1]):
        agree(of(view), oracle(wide(view)))
    c = values("complex64", (30, 40))
    agree(of(c.conj()), oracle(wide(c)))
    agree(of(c.conj().imag), oracle(wide(c.conj().imag.clone())))
    agree(of(np.asfortranarray(t.numpy())[:, :, ::-1]), oracle(t.numpy()))
    agree(of(t.numpy().astype(">f4")), oracle(t.numpy()))


def test_types_that_numpy_does_not_have():
    t = torch.linspace(-100, 100, 999).to(torch.float8_e4m3fnuz)
    agree(of(t), oracle(wide(t)))
    halves = torch.complex(*torch.randn(2, 500)).to(torch.complex32)
    agree(of(halves), oracle(torch.view_as_real(halves).float().double().numpy().view(np.complex128)[..., 0]))
    assert stats.describe(np.zeros(3, ml_dtypes.float8_e4m3b11fnuz), "x") == {"d": "float8_e4m3b11fnuz", "s": [3]}    # no numbers, and no invented ones
    with pytest.raises(TypeError, match="meta"):
        of(torch.empty(2, device="meta"))


def test_the_same_digits_on_any_number_of_threads(monkeypatch):
    t = values("bfloat16", (9 * blocks.BLOCK + 12345,), specials=True)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(blocks, "threads", lambda: threads)
        s = sketch.sketch(t)
        found.append((of(t), s.buckets.tobytes(), s.json("0")))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", FLOATS + ["int32", "bool", "complex64"])
def test_where_a_gpu_computes_them(name, monkeypatch):
    """The same code on the CPU's tensors, in several pieces."""
    monkeypatch.setattr(torch_stats, "DEVICE_BLOCK", 1000)
    for t in (values(name, (3, 1001), specials=name in FLOATS), values(name, (0,)), values(name, (7, 9)).t()):
        with torch.no_grad():
            agree(torch_stats.on_device(t), oracle(wide(t)))


_CPP = """
#include "parity_probe.hpp"
#include <fstream>
#include <iterator>
int main(int, char** argv) {
  using namespace parity::probe;
  Options options;
  options.statistics_only = true;
  Writer w(argv[1], options);
  for (const Dtype& dtype : {f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i8, i16, i32, i64, u8, u16, u32, u64, boolean, c64, c128}) {
    std::ifstream file(std::string(argv[2]) + "/" + dtype.name, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    w.write(dtype.name, bytes.data(), {static_cast<std::int64_t>(bytes.size() / dtype.size)}, dtype);
  }
  w.close();
}
"""


def test_the_cpp_header_agrees(tmp_path):
    (tmp_path / "a.cpp").write_text(_CPP)
    build(tmp_path / "a.cpp", tmp_path / "a", "-O2")
    tensors = {name: values(name, (150001,), specials=name in FLOATS) for name in DTYPES}
    for name, t in tensors.items():
        (tmp_path / name).write_bytes(t.contiguous().view(torch.uint8).numpy().tobytes())
    subprocess.run([str(tmp_path / "a"), str(tmp_path / "cpp.h5"), str(tmp_path)], check=True)
    theirs, mine = points(tmp_path / "cpp.h5"), written(tmp_path / "python.h5", **tensors)
    assert theirs.keys() == mine.keys() and len(mine) == len(DTYPES)
    for key, e in theirs.items():
        assert {k: e[k] for k in ("d", "s", "v")} == {k: mine[key][k] for k in ("d", "s", "v")} and list(e["stats"]) == list(mine[key]["stats"])
        agree(mine[key]["stats"], {**e["stats"], "complex": "complex" in key[0]}, 1e-7 if key[0] in FLOATS[1:] else 1e-11)
