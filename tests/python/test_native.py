"""The library that the Python recorder takes the C++ header's code from: its numbers against numpy's, on any number of threads.

    python -m pytest tests/python/test_native.py     needs the built library: PARITY_PROBE_LIBRARY, else build/dev/libparity-probe.so
"""
import concurrent.futures
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from parity_probe import blocks, native, sketch, stats
from parity_probe.torch_bits import torch_bits
from test_stats_level import COUNTS, DTYPES, FLOATS, agree, values

ROOT = Path(__file__).resolve().parents[2]
BUILT = os.environ.get(native.VARIABLE) or str(ROOT / "build/dev" / native.NAME)
BLOCK = blocks.LARGE


def load(path, monkeypatch):
    monkeypatch.setenv(native.VARIABLE, str(path))
    native.library.cache_clear()
    return native.library()


@pytest.fixture(autouse=True)
def built(monkeypatch):
    """Each test begins with the library under test, whatever this process has loaded."""
    if load(BUILT, monkeypatch) is None:
        pytest.skip(f"{BUILT} is not built")
    yield
    native.library.cache_clear()


def by_numpy(describe, *args):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: None)
        return describe(*args)


def layouts(t):
    """Tensors of the same elements, or some of them: as they lie, turned, with gaps, from behind, one element, none."""
    grid = t[:60 * 40].view(3, 4, 10, 20)
    return t, grid, grid.permute(3, 1, 0, 2), grid.contiguous(memory_format=torch.channels_last), grid[:, ::2, 1:7], grid[:1].expand(5, 4, 10, 20), t[1:], t[3], t[:0].view(0, 7)


def hard(name):
    """Tensors of a type of floats whose sums are delicate: constants, subnormals, huge and far from 0, nothing finite, zeros of both signs."""
    def made(x):
        return torch.as_tensor(x, dtype=torch.float64).to(getattr(torch, name))
    size, g = 5000, torch.Generator().manual_seed(1)
    x = torch.rand(size, generator=g, dtype=torch.float64) * 2 - 1
    info = torch.finfo(getattr(torch, name))
    out = [made(torch.full((size,), .1)), made(x * info.tiny * 2), made(x * info.tiny * info.eps * 9), made(x * info.max / 2), made(x + 100), made(torch.zeros(size)),
           made(-torch.zeros(size)), made(torch.full((7,), float("nan")))]
    return out + [made([float("inf"), float("-inf"), float("nan")])] if name != "float8_e4m3fn" else out


# --- statistics ----------------------------------------------------------------------------------------------------------
def of(t):
    return stats.describe(t, "x").get("stats")


def same_statistics(t):
    """The library's are numpy's."""
    found, wanted = of(t), by_numpy(of, t)
    assert list(found) == list(wanted)
    if native.statistics(*torch_bits(t)[:2]) is None:
        assert t.dtype == torch.float64 and wanted["std"] is None and found == wanted   # whose squares overflow: left to numpy
        return
    agree(found, {**wanted, "complex": t.is_complex()}, 1e-7 if t.numel() >= stats.FEW else 1e-11)


@pytest.mark.parametrize("name", DTYPES)
def test_statistics_of_every_type_and_layout(name):
    t = values(name, (2 * BLOCK + 12345,), specials=name in FLOATS)
    for view in layouts(t):
        same_statistics(view)
    for x in hard(name) if name in FLOATS else ():
        same_statistics(x)


def test_equal_numbers_have_no_deviation():
    for t in (torch.full((BLOCK + 5,), .1), torch.full((BLOCK + 5,), .1, dtype=torch.float64)):
        assert of(t) == by_numpy(of, t) and of(t)["std"] == 0 and of(t)["mean"] == t[0].item()


def test_what_float64_cannot_hold_is_left_to_numpy():
    x = torch.tensor([1e308, 1e308, 1.5e308], dtype=torch.float64)
    assert native.statistics(*torch_bits(x)[:2]) is None and of(x) == by_numpy(of, x) and of(x)["mean"] > 1e308
    assert native.sketch(*torch_bits(x)[:2], 512) is None


def test_marks_on_a_tensor():
    c = values("complex64", (300, 40))
    for t in (c.conj(), c.conj().imag, c.t(), torch.nn.Parameter(values("float32", (30, 40)))):
        same_statistics(t)
    assert of(c.conj().imag)["mean"] == pytest.approx(-c.imag.double().mean().item())


def test_types_that_it_does_not_know():
    for t in (torch.linspace(-100, 100, 999).to(torch.float8_e4m3fnuz), torch.complex(*torch.randn(2, 500)).to(torch.complex32)):
        assert native.statistics(*torch_bits(t)[:2]) is None and of(t) == by_numpy(of, t)


def test_arithmetic_of_the_program_is_its_own():
    """PyTorch was told to take subnormals for 0: the recording sees them all the same."""
    t = torch.full((3000,), 1e-42)
    try:
        assert torch.set_flush_denormal(True)
        found = native.statistics(*torch_bits(t)[:2])
    finally:
        torch.set_flush_denormal(False)
    assert (found["zero"], found["max"], found["std"]) == (0, t[0].item(), 0) and found["mean"] > 0


# --- sketches ------------------------------------------------------------------------------------------------------------
def same_sketch(t, buckets=None):
    raw = torch_bits(t)[:2]
    found, wanted = sketch.sketch_bits(*raw, buckets=buckets), by_numpy(lambda: sketch.sketch_bits(*raw, buckets=buckets))
    a, b = found.json("0"), wanted.json("0")
    assert list(a) == list(b) and {key: a[key] for key in (*COUNTS, "min", "max", "specials", "fits")} == {key: b[key] for key in (*COUNTS, "min", "max", "specials", "fits")}
    assert found.buckets.shape == wanted.buckets.shape
    if a["sum_squares"] is None:
        assert b["sum_squares"] is None
        return
    length = max(np.sqrt(wanted.sum_squares), 1e-300)
    assert a["sum_squares"] == pytest.approx(b["sum_squares"], rel=1e-12) and abs(a["sum"] - b["sum"]) <= 1e-13 * length * np.sqrt(max(t.numel(), 1))
    assert np.linalg.norm(found.buckets - wanted.buckets) <= 1e-13 * length


@pytest.mark.parametrize("name", DTYPES)
def test_sketches_of_every_type_and_layout(name):
    t = values(name, (2 * BLOCK + 12345,), specials=name in FLOATS)
    assert native.sketch(*torch_bits(t)[:2], 512) is not None
    for view in layouts(t):
        same_sketch(view)
    for x in hard(name) if name in FLOATS else ():
        same_sketch(x)
    for buckets in (1, 64, 4096):
        same_sketch(t[:70000], buckets)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_what_fits_a_narrower_type(name):
    for wider in ("float32", "float64"):
        same_sketch(values(name, (9000,)).to(getattr(torch, wider)))


def test_places_beyond_those_remembered():
    same_sketch(torch.randint(-9, 9, ((1 << 24) + 70000,), dtype=torch.int8))


def test_memory_that_was_written_to():
    """Any byte, and pieces that changed places."""
    for t in (values("float32", (BLOCK + 77,)), values("bfloat16", (50001,)), values("uint8", (4099,)), values("complex64", (9000,))):
        dtype, raw = torch_bits(t)[:2]
        words = native.words(dtype, raw)
        assert native.sketch(dtype, raw, 512, with_words=True)[0].words == words and native.sketch(dtype, raw, 512)[0].words == 0
        memory = t.view(torch.uint8).numpy()
        for byte in (0, memory.size // 2, memory.size - 1):
            memory[byte] ^= 4
            assert native.words(dtype, raw) != words
            memory[byte] ^= 4
        assert native.words(dtype, raw) == words
    t = torch.randn(5, 4096)
    assert len({native.words("float32", torch_bits(x.contiguous())[1]) for x in (t, t.roll(1, 0), t.flip(0))}) == 3


# --- threads -------------------------------------------------------------------------------------------------------------
def everything(t):
    raw = torch_bits(t)[:2]
    found, buckets = native.sketch(*raw, 2048, with_words=True)
    return native.statistics(*raw), buckets.tobytes(), bytes(found), native.words(*raw)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "complex64"])
def test_the_same_bits_on_any_number_of_threads(name, monkeypatch):
    t = values(name, (5 * BLOCK + 12345,), specials=name in FLOATS)
    found = []
    for threads in (1, 2, 5, 0, 1000):
        monkeypatch.setattr(blocks, "threads", lambda: threads)
        found.append(everything(t))
    assert all(one == found[0] for one in found)


def test_several_threads_at_once(monkeypatch):
    """… which ask for other numbers of threads."""
    tensors = [values("float32", (3 * BLOCK + i,), seed=i) for i in range(4)]
    wanted = [everything(t) for t in tensors]
    turn = iter(range(10 ** 6))
    monkeypatch.setattr(blocks, "threads", lambda: 1 + next(turn) % 3)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(everything, tensors * 8)) == wanted * 8
