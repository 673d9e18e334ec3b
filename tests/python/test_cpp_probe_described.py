"""probes/cpp describes tensors where they lie, by blocks, vectors and threads: against plain numpy and Python's sketches, wherever something special stands in a block."""
import os
import subprocess

import h5py
import numpy as np
import pytest
import torch

from test_cpp_probe import ROOT, build
from test_recorder_replay import read_events
from test_sketch import STATISTICS
from test_stats_level import DTYPES, FLOATS, NUMBERS, agree, oracle, points, values, wide

from parity_probe import sketch


@pytest.fixture(scope="module", params=["g++", "clang++"])
def described(request, tmp_path_factory):
    program = build(ROOT / "tests/probe/described.cpp", tmp_path_factory.mktemp(request.param) / "described", "-O2", compiler=request.param)

    def run(folder, level, tensors, threads=2, shard=(), **environment):
        """`tensors`: {name: torch tensor of any strides, or (tensor, bytes before it)}; each is written with all the memory that its storage has, as the part `shard`, if any."""
        lines = []
        for name, t in tensors.items():
            t, ahead = t if isinstance(t, tuple) else (t, 0)
            memory = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage()).numpy().tobytes()
            (folder / name).write_bytes(b"\x7f" * ahead + memory)
            first = ahead + t.storage_offset() * t.element_size()
            lines.append(" ".join(map(str, [name, str(t.dtype)[6:], first, t.ndim, *t.shape, *t.stride(), len(shard) // 3, *shard])))
        file = folder / f"{level}.h5"
        subprocess.run([str(program), str(file), level, str(threads), str(folder)], input="\n".join(lines), text=True, check=True, timeout=120, env={**os.environ, **environment})
        return file
    run.program = program
    return run


def special_places():
    """float32 tensors of three blocks and a tail, with one thing that is no ordinary number at the begin, the middle and the end of a vector, of a block, of the tensor."""
    plain = values("float32", (3 * 4096 + 5,))
    for place in (0, 3, 7, 8, 4095, 4096, 6001, 3 * 4096 - 1, 3 * 4096, 3 * 4096 + 4):
        for name, value in (("nan", np.nan), ("plus", np.inf), ("minus", -np.inf), ("zero", 0.0), ("low", -1e30), ("high", 3e38), ("tiny", 1e-42)):
            t = plain.clone()
            t[place] = value
            yield f"{name}-{place}", t


def layouts():
    t = values("float32", (40, 50, 30))
    return {"plain": t, "turned": t.permute(2, 0, 1), "part": t[1:, 5:, :7], "gaps": t[:, ::3], "expanded": t[:1, :, :1].expand(40, 50, 30), "one": t[:1, :, None, :1],
            "unaligned": (t, 1), "empty": t[:0]}


def test_vectors_and_tails(described):
    subprocess.run([described.program, "lanes"], check=True)


def test_statistics(described, tmp_path):
    tensors = {**dict(special_places()), **layouts()}
    for name in DTYPES:
        for n in (1, 5, 1023, 4097, 300_001):
            tensors[f"{name}-{n}"] = values(name, (n,), specials=name in FLOATS)
    tensors["no-number"] = torch.full((5000,), float("nan"))
    for name, t in (("constant", torch.full((9000,), .1)), ("zeros", torch.zeros(9000)), ("far", 1e6 + values("float32", (9000,)) / 10)):
        tensors[name] = t
    found = points(described(tmp_path, "stats", tensors))
    assert len(found) == len(tensors)
    for name, t in tensors.items():
        t = t[0] if isinstance(t, tuple) else t
        agree(found[name, 0, "output"]["stats"], oracle(wide(t)), 1e-11)
    assert found["far", 0, "output"]["stats"]["std"] == pytest.approx(wide(tensors["far"]).std(), rel=1e-9)
    constant = found["constant", 0, "output"]["stats"]
    assert {constant[k] for k in ("mean", "min", "max", "mean_abs")} == {float(np.float32(.1))} and constant["std"] == 0


def test_sketches(described, tmp_path):
    tensors = {**dict(special_places()), **layouts()}
    for name in DTYPES:
        tensors[name] = values(name, (150_001 if name == "float32" else 9001,), specials=name in FLOATS)
    tensors["large"] = values("float32", (1 << 18) * 3 + 77)
    tensors["bfloat16-in-float32"], tensors["float16-in-float64"] = values("bfloat16", (9000,)).float(), values("float16", (9000,)).double()
    with h5py.File(described(tmp_path, "sketch", tensors)) as f:
        found = {e["path"]: e for e in read_events(f) if e["e"] == "point"}
        assert found.keys() == tensors.keys()
        for name, t in tensors.items():
            t, e = t[0] if isinstance(t, tuple) else t, found[name]
            if "k" in e:
                assert t.numel() * t.element_size() <= 4096
                continue
            mine, theirs = sketch.sketch(t), e["sketch"]
            assert {k: theirs[k] for k in STATISTICS} == {k: mine.json("")[k] for k in STATISTICS}, name
            for k in ("sum", "sum_squares", "min", "max"):
                assert theirs[k] == pytest.approx(mine.json("")[k], rel=1e-12, abs=1e-9), (name, k)
            buckets = f["values"][theirs["k"]][()]
            assert buckets.shape == mine.buckets.shape and np.linalg.norm(buckets - mine.buckets) <= 1e-13 * np.sqrt(mine.sum_squares), name


def test_places_beyond_the_remembered(described, tmp_path):
    """Hashes of the first 2^24 numbers are kept, others computed."""
    t = torch.zeros((1 << 24) + 70_000, dtype=torch.bfloat16)
    t[(1 << 24) - 3:] = values("bfloat16", (70_003,))
    with h5py.File(described(tmp_path, "sketch", {"x": t})) as f:
        e = next(e for e in read_events(f) if e["e"] == "point")
        mine = sketch.sketch(t)
        assert np.linalg.norm(f["values"][e["sketch"]["k"]][()] - mine.buckets) <= 1e-13 * np.sqrt(mine.sum_squares)


def test_one_number_that_needs_its_type(described, tmp_path):
    """The last one, far from where narrower types are mostly ruled out."""
    t = values("bfloat16", (600_001,)).float()
    for last, fits in ((1.0, ["bfloat16"]), (.1, [])):
        t[-1] = last
        with h5py.File(described(tmp_path, "sketch", {"x": t})) as f:
            e = next(e for e in read_events(f) if e["e"] == "point")
            assert e["sketch"]["fits"] == sketch.sketch(t).fits == [name for name in ("float16", "bfloat16") if bool((t.to(getattr(torch, name)).float() == t).all())]
            assert e["sketch"]["fits"] in (fits, ["float16", *fits])


def test_rows_of_a_part_lie_anywhere(described, tmp_path):
    """… across the ends of the blocks in which hashes are kept."""
    t = values("float32", (3, 50_001))
    with h5py.File(described(tmp_path, "sketch", {"x": t}, shard=(1, 30_000, 90_000))) as f:
        e, mine = next(e for e in read_events(f) if e["e"] == "point"), sketch.sketch(t, (1, 30_000, 90_000))
        assert e["s"] == [3, 90_000] and e["sketch"]["part"] == mine.json("")["part"]
        assert np.linalg.norm(f["values"][e["sketch"]["k"]][()] - mine.buckets) <= 1e-13 * np.sqrt(mine.sum_squares)


@pytest.mark.parametrize("level", ["stats", "sketch"])
def test_any_number_of_threads_gives_the_same_bits(described, tmp_path, level):
    tensors, files = {"x": values("float32", (1_500_001,), specials=True), "half": values("float16", (900_000,))}, []
    for threads in (1, 2, 3, 7):
        (tmp_path / str(threads)).mkdir()
        with h5py.File(described(tmp_path / str(threads), level, tensors, threads)) as f:
            files.append(([e for e in read_events(f) if e["e"] == "point"], {k: v[()].tobytes() for k, v in f["values"].items()}))
    assert all(file == files[0] for file in files)


@pytest.mark.parametrize("level", ["stats", "sketch"])
def test_the_programs_own_arithmetic(described, tmp_path, level):
    """A program that takes subnormals for 0, rounds up and traps at NaN: what is written is the same, and its arithmetic stays its own."""
    subnormal = values("float32", (600_001,)) * 1e-39
    tensors = {"subnormal": subnormal, "nan": values("float32", (5000,), specials=True), "double": values("float64", (5000,), specials=True)}
    found = []
    for environment in ({}, {"FLUSH": "1"}):
        with h5py.File(described(tmp_path, level, tensors, **environment)) as f:
            found.append(([{**e, "src": ""} for e in read_events(f) if e["e"] == "point"], {k: v[()].tobytes() for k, v in f["values"].items()}))
    assert found[0] == found[1]
    if level == "stats":
        stats = found[1][0][0]["stats"]
        assert (stats["zero"], stats["min"]) == (0, float(subnormal.min())) and 0 < stats["mean_abs"] < 1e-37 and all(stats[k] is not None for k in NUMBERS)


@pytest.mark.parametrize("queue", [1 << 20, 1 << 28])
def test_memory_of_copies_is_used_again(described, tmp_path, queue):
    """… once they are in the file: tensors of all sizes, of elements that nothing else has, while others still wait."""
    sizes = [1, 40_000, 70_000, 33_000, 65_000, 200_000, 150_000, 32_768, 32_767, 300_000] * 6
    tensors = {str(i): torch.arange(n, dtype=torch.float32) + 1000 * i for i, n in enumerate(sizes)}
    tensors["turned"] = values("float32", (300, 400)).t()
    with h5py.File(described(tmp_path, "module", tensors, QUEUE=str(queue))) as f:
        found = {e["path"]: f["values"][e["k"]][()] for e in read_events(f) if e["e"] == "point"}
    assert found.keys() == tensors.keys()
    for name, t in tensors.items():
        assert np.array_equal(found[name], t.numpy()), name
