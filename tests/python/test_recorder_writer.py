"""parity_probe.Writer: arrays of every library, bit by bit, under names."""
import json

import h5py
import ml_dtypes
import numpy as np
import pytest
import torch

from test_recorder_replay import load, one_thread, parity_probe, read_events, same  # noqa: F401


def written(path):
    f = h5py.File(path, "r")
    return f, [e for e in read_events(f) if e["e"] == "point"]


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int64", "uint8", "bool", "complex64"])
def test_numpy_torch_and_ml_dtypes_agree(tmp_path, name):
    dtype = getattr(torch, name)
    bits = torch.randint(0, 2 if name == "bool" else 256, (3, 4, torch.empty((), dtype=dtype).element_size()), dtype=torch.uint8)
    t = (bits.bool() if name == "bool" else bits.view(dtype)).reshape(3, 4)
    carrier = np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
    array = bits.numpy().view(np.uint8).reshape(-1).view(carrier).reshape(3, 4)
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        w.write("torch", t)
        w.write("numpy", array)
        w.write("transposed", array.T)
        w.write("strided", t[:, ::2])
    f, points = written(tmp_path / "a.h5")
    a, b, c, d = (load(f["values"][p["k"]], restore_strides=False) for p in points)
    assert same(a, t) and same(b, t) and same(c, t.t()) and same(d, t[:, ::2]) and {p["d"] for p in points} == {name}


def test_jax_arrays(tmp_path):
    jnp = pytest.importorskip("jax.numpy")
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        w.write("x", jnp.arange(5, dtype=jnp.bfloat16) / 3)
    f, (p,) = written(tmp_path / "a.h5")
    assert p["d"] == "bfloat16"


def test_every_bfloat16_survives_and_reads_as_numbers(tmp_path):
    bits = np.arange(65536, dtype=np.uint16)
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        w.write("all", bits.view(ml_dtypes.bfloat16))
    f, (p,) = written(tmp_path / "a.h5")
    stored = f["values"][p["k"]]
    raw = np.empty(65536, np.uint16)
    stored.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=stored.id.get_type())
    assert np.array_equal(raw, bits)
    assert np.array_equal(stored[()], bits.view(ml_dtypes.bfloat16).astype(np.float32), equal_nan=True)
    kind = stored.id.get_type()
    assert (kind.get_size(), kind.get_fields(), kind.get_ebias()) == (2, (15, 7, 8, 0, 7), 127)


def test_calls_roles_and_provenance(tmp_path):
    with parity_probe.Writer(tmp_path / "a.h5", config={"dim": 8, "eps": 1e-6, "odd": object}, model="Port") as w:
        assert [w.write("h.0", np.float32(i)) for i in range(3)] == [0, 1, 2]
        assert w.write("h.0", np.zeros(2), role="input") == 0
        w.write("h.0.weight", [1.0, 2.0], role="weight")
        w.write("a/b", 3, role="weight")
        w.note(text="hello")
    f, points = written(tmp_path / "a.h5")
    assert [(p["path"], p["call"], p["role"], p["s"]) for p in points] == [
        ("h.0", 0, "output", []), ("h.0", 1, "output", []), ("h.0", 2, "output", []), ("h.0", 0, "input", [2]), ("h.0.weight", 0, "weight", [2]),
        ("a/b", 0, "weight", [])]
    assert set(f["weights"]) == {"h.0.weight", "a%2Fb"} and f.attrs["complete"] == 1 and f.attrs["model"] == "Port" and f.attrs["format"] == "parity-dump/1"
    about = json.loads(f.attrs["provenance"])
    assert about["config"]["dim"] == 8 and about["numpy"] == np.__version__ and read_events(f)[-1] == {"e": "note", "text": "hello"}


def test_values_are_taken_at_once(tmp_path):
    x = np.zeros(3)
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        w.write("x", x)
        x[:] = 1
    f, (p,) = written(tmp_path / "a.h5")
    assert not f["values"][p["k"]][()].any()


def test_empty_writer_makes_an_empty_file(tmp_path):
    parity_probe.Writer(tmp_path / "a.h5").close()
    f, points = written(tmp_path / "a.h5")
    assert f.attrs["complete"] == 1 and points == []


def test_exception_leaves_an_incomplete_file(tmp_path):
    with pytest.raises(ZeroDivisionError), parity_probe.Writer(tmp_path / "a.h5") as w:
        w.write("x", 1.0)
        1 / 0
    f, points = written(tmp_path / "a.h5")
    assert f.attrs["complete"] == 0 and len(points) == 1


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], dtype="datetime64[D]"), np.zeros(2, np.longdouble),
                                   np.zeros(2, dtype=[("a", "f4")])])
def test_elements_that_are_no_numbers(tmp_path, array):
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        with pytest.raises(TypeError, match="a.h5: bad"):
            w.write("bad", array)
        w.write("good", np.zeros(1, ">f4"))
    f, (p,) = written(tmp_path / "a.h5")
    assert p["path"] == "good" and p["d"] == "float32"


class Tensor:
    """Of another library: numpy takes it for one object, as it does tinygrad's."""
    dtype = "dtypes.float"


class Buffer:
    """As MLX's bfloat16: it has a buffer, of a format that PEP 3118 does not know."""
    dtype = "mlx.core.bfloat16"

    def __array__(self, *_, **__):
        raise ValueError("'bfloat16' is not a valid PEP 3118 buffer format string\nand more")


@pytest.mark.parametrize("level", parity_probe.writer.LEVELS)
@pytest.mark.parametrize("array, why", [(Tensor(), r"\.Tensor of dtypes\.float \(it becomes one object\)"), (Buffer(), r"\.Buffer of mlx\.core\.bfloat16 \('bfloat16' is not a valid .* string\)")])
def test_arrays_that_numpy_cannot_read(tmp_path, array, why, level):
    with parity_probe.Writer(tmp_path / "a.h5", level=level) as w:
        with pytest.raises(TypeError, match=r"a\.h5: h\.0\.attn: numpy cannot read a .*" + why + r"; hand over .*\.numpy\(\).*float32") as e:
            w.write("h.0.attn", array)
        assert "\n" not in str(e.value)
        w.write("good", np.zeros(1))
    assert [p["path"] for p in written(tmp_path / "a.h5")[1]] == ["good"]


def test_misuse(tmp_path):
    w = parity_probe.Writer(tmp_path / "a.h5")
    with pytest.raises(ValueError, match="role"):
        w.write("x", 1.0, role="gradient")
    w.close()
    w.close()
    with pytest.raises(parity_probe.Error, match="closed"):
        w.write("x", 1.0)
    with pytest.raises(parity_probe.Error, match="no folder"):
        parity_probe.Writer(tmp_path / "no" / "a.h5")
    with pytest.raises(TypeError, match="sparse|meta"):
        parity_probe.Writer(tmp_path / "b.h5").write("x", torch.empty(2, device="meta"))


def test_same_run_same_bytes(tmp_path, monkeypatch):
    from parity_probe import provenance
    monkeypatch.setattr(provenance, "collect", lambda config=None: {})
    for name in "ab":
        with parity_probe.Writer(tmp_path / name) as w:
            w.write("x", np.arange(5.0))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_long_attribute_fits(tmp_path):
    with parity_probe.Writer(tmp_path / "a.h5", config={"labels": {i: "x" * 20 for i in range(9000)}}) as w:
        w.write("x", 1)
    f, _ = written(tmp_path / "a.h5")
    assert len(json.loads(f.attrs["provenance"])["config"]["labels"]) == 9000
