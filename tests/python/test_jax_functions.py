"""parity_probe.jax on plain functions, primitives, odd dtypes, and misuse."""
import functools
import subprocess
import sys
import threading
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import parity_probe
from jax_recordings import Recording, same


def attention(q, k, scale):
    return jax.nn.softmax(q @ k.T * scale, -1)


@functools.partial(jax.jit, static_argnames=("heads",))
def split(x, heads=2):
    return tuple(jnp.split(x, heads, -1))


def forward(params, x):
    for layer in params["layers"]:
        a, b = split(x @ layer["w"] + layer["b"], heads=2)
        x = attention(a, b, 0.5) @ x
    return x


class Model:
    def step(self, x):
        return x * 2


other = types.ModuleType("jax_other_module")
other.copied = attention
sys.modules["jax_other_module"] = other
jitted = jax.jit(forward)


def parameters(layers=2, dim=4):
    r = np.random.RandomState(0)
    return {"layers": [{"w": jnp.asarray(r.randn(dim, dim), jnp.float32), "b": jnp.asarray(r.randn(dim), jnp.float32)} for _ in range(layers)]}


X = jnp.asarray(np.random.RandomState(1).randn(3, 4), jnp.float32)
PATHS = ["/split.0", "/split.0[1]", "/attention.0", "/split.1", "/split.1[1]", "/attention.1", ""]


@pytest.mark.parametrize("run, target", [(forward, forward), (jitted, forward), (jitted, jitted), (jax.jit(lambda p, x: forward(p, x)), forward)])
def test_a_functional_port(tmp_path, run, target):
    params = parameters()
    y = run(params, X)
    with parity_probe.jax.record(target, tmp_path / "a.h5", functions=["test_jax_functions:attention", split], weights=params, config={"dim": 4}):
        assert same(run(params, X), y) and same(run(params, X), y)
    assert same(run(params, X), y)
    r = Recording(tmp_path / "a.h5")
    assert r.paths == PATHS + [f"{p}#1" for p in PATHS] and r.about["config"] == {"dim": 4} and r.model == "forward"
    assert set(r.weight) == {"layers.0.w", "layers.0.b", "layers.1.w", "layers.1.b"}
    a, b = np.split(X @ params["layers"][0]["w"] + params["layers"][0]["b"], 2, -1)
    assert np.allclose(r.output["/split.0[1]", 0], b, atol=1e-6) and np.allclose(r.input["/attention.0", 1], a, atol=1e-6)
    e = np.exp(a @ b.T * 0.5)
    assert np.allclose(r.output["/attention.0", 0], e / e.sum(-1, keepdims=True), atol=1e-6)


def test_functions_alone_and_every_reference_to_them(tmp_path):
    kept = {"f": attention}
    with parity_probe.jax.record(None, tmp_path / "a.h5", functions=["test_jax_functions:attention", "test_jax_functions:Model.step"]):
        y = other.copied(X, X, 1.0)
        kept["f"](X, X, 0.5)
        jax.jit(attention)(X, X, 0.25)
        Model().step(X)
    r = Recording(tmp_path / "a.h5")
    assert r.paths == ["~/attention.0", "~/attention.1", "~/attention.2", "~/step.0"] and same(r.output["~/attention.0", 0], y)
    assert same(r.output["~/step.0", 0], X * 2) and same(other.copied(X, X, 1.0), y)


def test_jit_made_inside_finds_static_arguments(tmp_path):
    def local(x, n):
        return x * (n if isinstance(n, int) else 1 / 0)
    scale = 3

    def closure(x):
        return local(x, n=scale)
    with parity_probe.jax.record(None, tmp_path / "a.h5", functions=[local, closure]):
        assert same(jax.jit(local, static_argnames="n")(X, 2), X * 2) and same(closure(X), X * 3)
        with pytest.raises(ZeroDivisionError):
            jax.jit(local)(X, 2)
    assert Recording(tmp_path / "a.h5").paths == ["~/local.0", "~/local.1", "~/closure.0"] and closure(X).shape == X.shape


def primitives_by_hand(x):
    y = jnp.sin(x)
    for _ in range(2):
        y = y * x + 1
    return y


@pytest.mark.parametrize("jit", [False, True])
def test_primitives(tmp_path, jit):
    run = jax.jit(primitives_by_hand) if jit else primitives_by_hand
    y = run(X)
    with parity_probe.jax.record(primitives_by_hand, tmp_path / "a.h5", primitives=True):
        assert same(run(X), y)
    r = Recording(tmp_path / "a.h5")
    assert [p for p in r.paths if "convert" not in p] == ["/sin.0", "/mul.0", "/add.0", "/mul.1", "/add.1", ""]  # outside jit JAX converts the 1
    assert np.allclose(r.output["/sin.0", 0], np.sin(X), atol=1e-6) and same(r.output["/mul.0", 0], r.output["/sin.0", 0] * np.asarray(X))
    assert same(r.output["/add.0", 0], r.output["/mul.0", 0] + np.float32(1)) and np.allclose(r.output["/add.1", 0], y, atol=1e-6)


def test_primitives_in_functions_loops_and_branches(tmp_path):
    @jax.jit
    def run(x):
        x, ys = jax.lax.scan(lambda c, v: (c + v, jnp.exp(c)), x[0], x)
        x = jax.lax.fori_loop(0, jnp.asarray(3), lambda i, c: c * 2, x)
        return jax.lax.cond(x[0] > 1e9, jnp.cos, jnp.tanh, x), jnp.sort(ys, axis=0)
    y = run(X)
    with parity_probe.jax.record(run, tmp_path / "a.h5", primitives=True):
        assert all(map(same, run(X), y))
    r = Recording(tmp_path / "a.h5")
    total = np.cumsum(np.concatenate([X[:1], X]), 0, dtype=np.float32)
    assert [c for p, c in r.output if p == "/exp.0"] == [0, 1, 2] and np.allclose(r.output["/exp.0", 2], np.exp(total[2]), rtol=1e-5)
    assert not any("cos" in p for p in r.paths) and np.allclose(r.output["/tanh.0", 0], np.tanh(total[3] * 8), rtol=1e-5)
    assert sum(np.allclose(v, total[3] * 8) for (p, _), v in r.output.items() if p.startswith("/mul.")) == 1
    assert np.allclose(r.output["/sort.0", 0], y[1], rtol=1e-6) and {"/scan.0", "/scan.0[1]", "/while.0", "/cond.0"} <= {p for p, _ in r.output}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "complex64", "int32", "uint8", "bool", "int8"])
def test_dtypes(tmp_path, dtype, jit):
    x = jnp.asarray([0, 1, 2.5, 100]).astype(dtype)
    f = lambda x: (x[::-1], x.reshape(2, 2), x[:0], x[0])  # noqa: E731
    run = jax.jit(f) if jit else f
    with parity_probe.jax.record(f, tmp_path / "a.h5"):
        y = run(x)
    r = Recording(tmp_path / "a.h5")
    assert [p for p in r.paths] == ["", "[1]", "[2]", "[3]"] and same(r.input["", 0], x)
    assert all(same(r.output[p, 0], v) for p, v in zip(r.paths, y)) and str(r.output["", 0].dtype) == dtype


@pytest.mark.parametrize("jit", [False, True])
def test_x64(tmp_path, jit):
    jax.config.update("jax_enable_x64", True)
    try:
        x = jnp.linspace(0, 1, 5) + 1j
        f = lambda x: (jnp.sin(x), x.real, jnp.arange(3))  # noqa: E731
        run = jax.jit(f) if jit else f
        with parity_probe.jax.record(f, tmp_path / "a.h5"):
            y = run(x)
    finally:
        jax.config.update("jax_enable_x64", False)
    r = Recording(tmp_path / "a.h5")
    assert [str(v.dtype) for v in r.output.values()] == ["complex128", "float64", "int64"] and r.about["x64"] is True
    assert all(same(r.output[p, 0], v) for p, v in zip(r.paths, y))


def test_random_keys_and_constants_pass(tmp_path):
    def f(key, x, text, none):
        return jax.random.split(key)[0], x + jax.random.normal(key, x.shape), np.arange(3), text
    for run in (f, jax.jit(lambda k, x: f(k, x, "", None)[:3])):
        arguments = (jax.random.key(0), X) + (("a", None) if run is f else ())
        with parity_probe.jax.record(f, tmp_path / "a.h5"):
            y = run(*arguments)
        r = Recording(tmp_path / "a.h5")
        assert r.paths == ["", "[1]"] and np.allclose(r.output["", 0], y[1], atol=1e-6) and list(r.output["[1]", 0]) == [0, 1, 2]


def test_inside_shard_map_is_said_not_to_be_seen(tmp_path):
    try:
        from jax import shard_map
    except ImportError:
        from jax.experimental.shard_map import shard_map
    spec = jax.sharding.PartitionSpec("d")
    sharded = shard_map(lambda x: attention(x, x, 1.0), mesh=jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",)), in_specs=spec, out_specs=spec)
    run = jax.jit(lambda x: split(sharded(x), heads=3))
    y = run(X)
    with parity_probe.jax.record(None, tmp_path / "a.h5", functions=[attention, split]):
        assert all(map(same, run(X), y))
    r = Recording(tmp_path / "a.h5")
    assert r.paths == ["~/split.0", "~/split.0[1]", "~/split.0[2]"] and r.notes == ["calls inside shard_map were not recorded"]
    with pytest.raises(parity_probe.Error, match="inside shard_map"), parity_probe.jax.record(None, tmp_path / "a.h5", functions=[attention]):
        run(X)


def test_nothing_recorded_is_an_error(tmp_path):
    ahead = jax.jit(forward).lower(parameters(), X).compile()
    (tmp_path / "a.h5").write_text("older")
    with pytest.raises(parity_probe.Error, match="nothing was recorded.*lower.*compile"), parity_probe.jax.record(forward, tmp_path / "a.h5"):
        ahead(parameters(), X)
    with pytest.raises(parity_probe.Error, match="none of the functions was called"), parity_probe.jax.record(None, tmp_path / "a.h5", functions=[attention]):
        jnp.ones(3) + 1
    with pytest.raises(parity_probe.Error, match="nothing was recorded"), parity_probe.jax.record(forward, tmp_path / "a.h5"):
        jax.make_jaxpr(forward)(parameters(), X)  # traced, not run
    assert (tmp_path / "a.h5").read_text() == "older"


@pytest.mark.parametrize("make, error, text", [
    (lambda p: parity_probe.jax.record(3, p), TypeError, "expected a flax module"),
    (lambda p: parity_probe.jax.record(None, p), TypeError, "name functions"),
    (lambda p: parity_probe.jax.record(forward, p / "no" / "a.h5"), parity_probe.Error, "no folder"),
    (lambda p: parity_probe.jax.record(forward, p / "a.h5", functions=["attention"]), parity_probe.Error, "package.module:function"),
    (lambda p: parity_probe.jax.record(forward, p / "a.h5", functions=["no.such:f"]), parity_probe.Error, "cannot be imported"),
    (lambda p: parity_probe.jax.record(forward, p / "a.h5", functions=["test_jax_functions:Model.stop"]), parity_probe.Error, "'stop' is not in"),
    (lambda p: parity_probe.jax.record(forward, p / "a.h5", functions=["math:sin"]), parity_probe.Error, "not a Python function")])
def test_misuse(tmp_path, make, error, text):
    with pytest.raises(error, match=text):
        make(tmp_path if error is not TypeError else tmp_path / "a.h5")


def test_one_recording_at_a_time(tmp_path):
    with parity_probe.jax.record(forward, tmp_path / "a.h5"):
        with pytest.raises(parity_probe.Error, match="already"):
            parity_probe.jax.record(forward, tmp_path / "b.h5").__enter__()
        forward(parameters(), X)
    assert Recording(tmp_path / "a.h5").complete == 1


def test_another_thread_is_not_recorded(tmp_path):
    with parity_probe.jax.record(forward, tmp_path / "a.h5"):
        thread = threading.Thread(target=lambda: (forward(parameters(), X), jitted(parameters(), X + 1)))
        thread.start()
        thread.join()
        jitted(parameters(), X)
    assert Recording(tmp_path / "a.h5").paths == [""]


@pytest.mark.parametrize("run", [forward, jitted])
def test_a_failing_recording_never_stops_the_model(tmp_path, monkeypatch, run):
    y = run(parameters(), X)

    def fail(*args, **kwargs):
        raise OSError("the disk is gone")
    monkeypatch.setattr(parity_probe.Writer, "write", fail)
    with pytest.warns(UserWarning, match="the model runs on"), pytest.raises(parity_probe.Error, match="a.h5: recording failed: OSError: the disk is gone"):
        with parity_probe.jax.record(forward, tmp_path / "a.h5"):
            assert same(run(parameters(), X), y)
    assert same(run(parameters(), X), y)


def test_a_second_run_that_differs_is_noted(tmp_path, monkeypatch):
    from parity_probe.jax import second_run
    honest = second_run.SecondRun.run

    def off_by_a_bit(self, args):
        results, slots = honest(self, args)
        return [np.nextafter(np.asarray(results[0]), np.float32(9)), *results[1:]], slots
    monkeypatch.setattr(second_run.SecondRun, "run", off_by_a_bit)
    with parity_probe.jax.record(forward, tmp_path / "a.h5"):
        jitted(parameters(), X)
    (note,) = Recording(tmp_path / "a.h5").notes
    assert "program forward" in note and "differs" in note and "12 of 12 elements" in note


def test_the_package_needs_no_jax():
    code = ("import sys\nfor name in ('jax', 'torch', 'flax'): sys.modules[name] = None\nimport parity_probe\n"
            "try: parity_probe.jax\nexcept ImportError: print('only parity_probe.jax needs it')")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "only parity_probe.jax needs it\n"
