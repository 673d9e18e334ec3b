"""Small models, each with one thing that recorders get wrong: aliasing, in-place edits, foreign writes, odd dtypes, exceptions, exchanged data."""
import dataclasses
import typing

import numpy as np
import pytest
import torch

from test_recorder_replay import load, one_thread, parity_probe, replay, same  # noqa: F401


class Fn(torch.nn.Module):
    """A module around a function of (module, *inputs)."""

    def __init__(self, f, **attributes):
        super().__init__()
        self.f = f
        for name, x in attributes.items():
            setattr(self, name, x)

    def forward(self, *args, **kwargs):
        return self.f(self, *args, **kwargs)


def record(model, path, *args, level="op", **kwargs):
    with parity_probe.record(model, path, level=level):
        result = model(*args, **kwargs)
    return result, replay(path)


def ops(r, name=None):
    return [e for e in r.events if e["e"] == "op" and (name is None or e["op"] == name)]


def leaves(r):
    return [e for e in r.events if e["e"] == "leaf"]


def outputs(r, path=""):
    serials = [e["id"] for e in r.events if e["e"] == "call" and e["path"] == path]
    return [v for e in r.events if e["e"] == "ret" and e["id"] in serials for v in e["outputs"]]


@pytest.mark.parametrize("level", ["op", "module"])
def test_in_place_edits_reach_views_and_get_versions(tmp_path, level):
    def f(m, x):
        x = x + 0
        half = x[:, :2]
        half.mul_(2)
        x[0] = 7.0
        half.add_(x[:, 2:])
        return {"x": x, "half": half}
    x = torch.randn(3, 4)
    out, r = record(Fn(f), tmp_path / "a.h5", x, level=level)
    got = {v["n"]: r.stored(v["k"]) for v in outputs(r)}
    assert same(got["x"], out["x"]) and same(got["half"], out["half"])
    assert {v["k"].partition(".")[2] for v in outputs(r)} == {"3"}


@pytest.mark.parametrize("level", ["op", "module"])
def test_values_are_taken_when_seen_not_later(tmp_path, level):
    """A boundary value that a later op edits in place keeps what it was; the input too."""
    inner = Fn(lambda m, x: x * 2)

    def f(m, x):
        y = m.inner(x)
        y.clamp_(-0.1, 0.1)
        x.zero_()
        return m.inner(y)
    x = torch.randn(5)
    before = x.clone()
    _, r = record(Fn(f, inner=inner), tmp_path / "a.h5", x, level=level)
    assert same(load(r.file["inputs/0/args.0"]), before)
    first, second = outputs(r, "inner")
    assert same(r.stored(first["k"]), before * 2) and same(r.stored(second["k"]), (before * 2).clamp(-0.1, 0.1) * 2)
    assert [e["call"] for e in r.events if e["e"] == "call" and e["path"] == "inner"] == [0, 1]


def test_tied_shared_and_unused_weights(tmp_path):
    shared = torch.nn.Linear(3, 3)
    model = Fn(lambda m, x: m.b(m.a(x)) + m.freqs * m.table["k"][0] + m.late, a=shared, b=shared, unused=torch.nn.Linear(2, 2),
               freqs=torch.arange(3.0), table={"k": [torch.ones(3)]})
    model.tied = model.a.weight
    model.register_buffer("hidden", torch.ones(2), persistent=False)

    def with_late(m, x):
        m.late = torch.full((3,), 0.5)
        return Fn.forward(m, x)
    model.forward = with_late.__get__(model)
    _, r = record(model, tmp_path / "a.h5", torch.randn(2, 3))
    assert set(r.file["weights"]) == {"a.weight", "a.bias", "b.weight", "b.bias", "tied", "unused.weight", "unused.bias", "freqs", "table.k.0", "hidden"}
    assert r.file["weights/a.weight"] == r.file["weights/b.weight"] == r.file["weights/tied"]
    assert [e["path"] for e in r.events if e["e"] == "call"] == ["", "a", "a"]
    assert same(load(r.file["weights/unused.weight"]), model.unused.weight)


def test_attribute_set_while_running_is_named(tmp_path):
    model = Fn(lambda m, x: x + m.cache, cache=torch.tensor([1.0, 2.0]))
    x, new = torch.ones(2), torch.full((2,), 9.0)
    with parity_probe.record(model, tmp_path / "a.h5"):
        model(x)
        model.cache = new
        model(x)
    r = replay(tmp_path / "a.h5")
    assert [e["names"] for e in leaves(r)] == [["inputs/0/args.0"], ["weights/cache"], ["weights/cache"]]
    assert same(load(r.file["weights/cache"]), torch.tensor([1.0, 2.0]))  # the name stays with the first


ALL = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool",
       "complex64", "complex128"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (2, 0, 3)])
def test_dtypes_and_shapes(tmp_path, name, shape):
    generator = torch.Generator().manual_seed(0)
    dtype = getattr(torch, name)
    size = torch.empty((), dtype=dtype).element_size()
    raw = torch.randint(0, 256, (*shape, size), dtype=torch.uint8, generator=generator)
    x = (raw.bool() if name == "bool" else raw.view(dtype)).reshape(shape)
    _, r = record(Fn(lambda m, x: x.clone()), tmp_path / "a.h5", x)
    stored = r.file["inputs/0/args.0"]
    assert same(load(stored), x) and stored.shape == shape
    if name == "bfloat16":
        assert stored.dtype == np.float32 and np.array_equal(stored[()], x.float().numpy(), equal_nan=True)


def test_complex32_conjugate_and_negative_views(tmp_path):
    z = torch.randn(3, dtype=torch.complex64)
    out, r = record(Fn(lambda m, z: (z.conj(), z.conj().imag, torch.view_as_complex(torch.view_as_real(z)) * 1j)), tmp_path / "a.h5", z)
    assert all(same(r.stored(v["k"]), t) for v, t in zip(outputs(r), out))
    with parity_probe.record(Fn(lambda m, z: z), tmp_path / "b.h5"):
        Fn(lambda m, z: z)
        z16 = z.to(torch.complex32)
        parity_probe.point("half", z16)
    import h5py
    with h5py.File(tmp_path / "b.h5") as f:
        stored = [d for d in f["values"].values() if d.attrs["dtype"] == b"complex32"]
        assert len(stored) == 1 and np.array_equal(stored[0]["r"], z16.real.numpy())


@pytest.mark.parametrize("layout", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0].expand(3, 4), lambda x: x[1:, 1:]])
@pytest.mark.parametrize("level", ["op", "module"])
def test_leaves_that_are_not_row_major(tmp_path, layout, level):
    x = layout(torch.randn(3, 4))
    out, r = record(Fn(lambda m, x: x @ x.transpose(0, 1)), tmp_path / "a.h5", x, level=level)
    assert same(load(r.file["inputs/0/args.0"]), x)


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    rest: typing.Any


def test_containers_and_literals(tmp_path):
    point = typing.NamedTuple("P", [("x", torch.Tensor)])

    def f(m, x, *more, scale=1.0, flags=None, **other):
        return Pair(x * scale, ({"a": [more[0], None], 3: point(other["extra"] + 1)}, "text"))
    model = Fn(f)
    model.forward = lambda x, *more, **kw: f(model, x, *more, **kw)
    x, y, z = torch.randn(2), torch.randn(2), torch.randn(2)
    _, r = record(model, tmp_path / "a.h5", x, y, scale=float("inf"), flags=(True, None, "a"), extra=z, nothing=None, odd=object(), dtype=torch.bfloat16)
    call = next(e for e in r.events if e["e"] == "call")
    assert [v["n"] for v in call["inputs"]] == ["x", "more.0", "extra"]
    assert call["literals"] == {"scale": {"float": "inf"}, "flags.0": True, "flags.1": None, "flags.2": "a", "nothing": None, "odd": "<builtins.object>",
                                "dtype": {"dtype": "bfloat16"}}
    assert [v["n"] for v in outputs(r)] == ["first", "rest.0.a.0", "rest.0.3.x"]
    assert set(r.file["outputs/0"]) == {"first", "rest.0.a.0", "rest.0.3.x"}


def test_random_ops_are_opaque_and_change_no_draw(tmp_path):
    def f(m, x):
        g = torch.Generator().manual_seed(3)
        noise = torch.randn(4, generator=g) + torch.empty(4).normal_()
        y = torch.nn.functional.dropout(x, 0.5) + noise
        y += torch.rand_like(y)
        return y, torch.randperm(5), torch.nn.functional.scaled_dot_product_attention(*[y.view(1, 1, 2, 2)] * 3)
    x = torch.randn(4)
    torch.manual_seed(5)
    plain = f(None, x)
    for level in ("op", "module"):
        torch.manual_seed(5)
        out, r = record(Fn(f), tmp_path / "a.h5", x, level=level)
        assert all(map(same, out, plain))
        assert {e["op"] for e in ops(r) if e.get("opaque") == "random"} >= {"aten::randn.generator", "aten::normal_", "aten::rand_like", "aten::randperm"}
        assert not any("opaque" in e for e in ops(r) if "attention" in e["op"])
        after = torch.rand(1)
        torch.manual_seed(5)
        f(None, x)
        assert same(after, torch.rand(1))  # the generator stands where it stood


@pytest.fixture(scope="module")
def custom():
    lib = torch.library.Library("parity_test", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.define("bump(Tensor(a!) x, Tensor y) -> ()")
    lib.impl("twice", lambda x: x * 2, "CPU")
    lib.impl("bump", lambda x, y: None if x.add_(y) is None else None, "CPU")
    yield torch.ops.parity_test
    lib._destroy()


@pytest.mark.parametrize("level", ["op", "module"])
def test_custom_ops_are_opaque(tmp_path, custom, level):
    def f(m, x):
        y = custom.twice(x)
        view = y[1:]
        custom.bump(y, x)
        return view + 1
    x = torch.randn(3)
    out, r = record(Fn(f), tmp_path / "a.h5", x, level=level)
    assert [(e["op"], e.get("opaque")) for e in ops(r)] == [("parity_test::twice", "custom"), ("aten::slice.Tensor", None), ("parity_test::bump", "custom"),
                                                            ("aten::add.Tensor", None)]
    assert [v["k"] for v in ops(r, "parity_test::bump")[0]["writes"]] == [f'{ops(r)[0]["out"][0]["v"]}.1']


@pytest.mark.parametrize("level", ["op", "module"])
def test_empty_is_executed_and_not_compared(tmp_path, level):
    def f(m, x):
        y = torch.empty_like(x)
        z = x.new_empty(2, 2)
        y.copy_(x)
        torch.mul(x, 3, out=z.view(-1))
        return y + z.flatten()
    _, r = record(Fn(f), tmp_path / "a.h5", torch.randn(4), level=level)
    made = [e for e in ops(r) if e.get("opaque") == "uninitialised"]
    assert [e["op"] for e in made] == ["aten::empty_like", "aten::new_empty"] and all("k" not in v for e in made for v in e["out"])


@pytest.mark.parametrize("level", ["op", "module"])
def test_memory_written_behind_pytorchs_back(tmp_path, level):
    """As a Triton kernel does: the result of `empty` is filled by nobody the dispatcher sees."""
    def f(m, x):
        y = torch.empty(4)
        y[1:].numpy()[:] = x[1:].numpy() * 2
        y[:1].numpy()[:] = -1
        return y + 1, torch.from_numpy(x.numpy())
    out, r = record(Fn(f), tmp_path / "a.h5", torch.arange(4.0), level=level)
    assert len(ops(r, "parity_probe::write")) == 1


def test_data_dependent_sizes(tmp_path):
    def f(m, x):
        rows = torch.nonzero(x > 0)
        return rows, x[x > 0], torch.masked_select(x, x < 0), torch.unique(x), x.sum().item() * x
    _, r = record(Fn(f), tmp_path / "a.h5", torch.randn(6), level="module")
    assert ops(r, "aten::nonzero")[0]["opaque"] == "data-dependent"
    assert all("opaque" not in e and "k" in e["out"][0] for e in ops(r, "aten::masked_select") + ops(r, "aten::index.Tensor"))
    assert ops(r, "aten::_local_scalar_dense")[0]["out"] == [None]


def test_exchanged_data_is_another_value(tmp_path):
    def f(m, x):
        a = m.w * x
        m.w.data = torch.full((2,), 5.0)
        b = m.w * x
        m.w.data = m.w.data.view(2, 1)
        return a + b, m.w * x
    out, r = record(Fn(f, w=torch.nn.Parameter(torch.ones(2))), tmp_path / "a.h5", torch.randn(2))
    assert same(r.stored(outputs(r)[0]["k"]), out[0])


@pytest.mark.parametrize("level", ["op", "module"])
def test_writes_through_data_and_set(tmp_path, level):
    def f(m, x):
        y = x + 0
        y.data.mul_(3)
        z = torch.zeros(2)
        z.set_(y[:2])
        z.add_(1)
        w = torch.zeros(2).resize_(3)
        w.fill_(2)
        return y, z, w, y.as_strided((2,), (1,), 1), x.as_strided((2,), (1,), 3)
    out, r = record(Fn(f), tmp_path / "a.h5", torch.arange(6.0)[2:5], level=level)
    assert all(same(r.stored(v["k"]), t) for v, t in zip(outputs(r), out))


def test_two_inputs_on_one_memory(tmp_path):
    def f(m, whole, part):
        part.mul_(2)
        return whole + 0
    whole = torch.arange(6.0)
    _, r = record(Fn(f), tmp_path / "a.h5", whole, whole[2:4])
    assert leaves(r)[1]["alias"] == {"v": leaves(r)[0]["v"], "stride": [1], "offset": 2}


def test_batch_norm_updates_its_statistics_in_silence(tmp_path):
    bn = torch.nn.BatchNorm1d(3).train()
    model = Fn(lambda m, x: (m.bn(x), m.bn.running_mean + 0), bn=bn)
    out, r = record(model, tmp_path / "a.h5", torch.randn(4, 3))
    assert same(r.stored(outputs(r)[1]["k"]), out[1]) and ops(r, "aten::native_batch_norm")[0]["writes"]
