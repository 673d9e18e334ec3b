"""parity_probe.jax on flax.nnx: every module by path, eager and jitted, results untouched, everything put back."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jax_port
import parity_probe
from jax_recordings import Recording, same

FUNCTIONS = ["jax_port:mul_add", "jax_port:rope_apply"]
BLOCK = ["norm", "attn.q", "attn/rope_apply.0", "attn.k", "attn/rope_apply.1", "attn.v", "attn.proj.0", "attn", "attn[1]", "/mul_add.0", ""]
PATHS = [f"blocks.{i}{p if p[:1] in ('', '/') else '.' + p}" for i in range(2) for p in BLOCK] + ["dropout", ""]


def data(dtype=jnp.float32, shape=(2, 6, 8)):
    return jnp.asarray(np.random.RandomState(1).randn(*shape), dtype)


def modes():
    yield "eager", lambda model: model
    yield "nnx.jit", lambda model: (lambda f: lambda x: f(model, x))(nnx.jit(lambda m, x: m(x)))

    def functional(model):
        graph, state = nnx.split(model)
        f = jax.jit(lambda state, x: nnx.merge(graph, state)(x))
        return lambda x: f(state, x)
    yield "split, merged in jax.jit", functional


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("mode", [m for _, m in modes()], ids=[n for n, _ in modes()])
def test_a_port(tmp_path, mode, dtype):
    model = jax_port.Port(dtype=dtype)
    run, x = mode(model), data(dtype)
    before = run(x)  # compiled before the recording begins
    with parity_probe.jax.record(model, tmp_path / "a.h5", functions=FUNCTIONS):
        inside, again = run(x), run(x + 1)
    assert same(before, inside) and same(run(x), before) and same(run(x + 1), again)
    r = Recording(tmp_path / "a.h5")
    assert r.complete == 1 and r.model == "Port" and r.about["dtype"] == jnp.dtype(dtype).name and r.about["jax"] == jax.__version__
    assert r.paths == PATHS + [f"{p}#1" for p in PATHS]
    assert set(r.weight) == r.linked and len(r.weight) == 22
    assert same(r.weight["blocks.1.attn.proj.0.kernel"], jax_port.array(model.blocks[1].attn.proj[0].kernel))
    assert same(r.weight["blocks.0.gate"], jax_port.array(model.blocks[0].gate))
    # each value against the module called alone, on the recorded input
    close = (lambda a, b: same(a, b)) if mode(model) is model else lambda a, b: np.allclose(
        np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=0, atol=2e-6 if dtype == jnp.float32 else 0.04)
    for call in range(2):
        assert close(r.input["", call], x + call) and close(r.output["", call], (inside, again)[call])
        for path, module in [("blocks.1.norm", model.blocks[1].norm), ("blocks.0.attn.k", model.blocks[0].attn.k),
                             ("blocks.1.attn.proj.0", model.blocks[1].attn.proj[0])]:
            assert close(r.output[path, call], module(jnp.asarray(r.input[path, call]))), path
        for i in range(2):
            assert close(r.output[f"blocks.{i}/mul_add.0", call],
                         r.output[f"blocks.{i}.attn", call] * r.weight[f"blocks.{i}.gate"] + r.input[f"blocks.{i}", call])
            assert close(r.output[f"blocks.{i}.attn/rope_apply.1", call], jax_port.rope_apply(
                jnp.asarray(r.output[f"blocks.{i}.attn.k", call]), jnp.asarray(r.input[f"blocks.{i}.attn/rope_apply.1[1]", call])))


def test_everything_is_put_back(tmp_path):
    from jax._src import pjit
    model, x = jax_port.Port(layers=1), data()

    def state():
        modules = [m for _, m in nnx.iter_modules(model)] if hasattr(nnx, "iter_modules") else [m for _, m in model.iter_modules()]
        return ([vars(c).get("__call__") for c in (nnx.Linear, jax_port.Port, jax_port.Block, nnx.Dropout)], jax_port.mul_add.__code__, vars(jax_port.mul_add),
                jax_port.rope_apply.__wrapped__.__code__, pjit._pjit_call_impl_python, pjit._get_fastpath_data, [sorted(vars(m)) for m in modules],
                [getattr(m, "_pytree__nodes", None) for m in modules], str(nnx.split(model)[0]))
    before = state()
    with parity_probe.jax.record(model, tmp_path / "a.h5", functions=FUNCTIONS):
        model(x)
        assert state() != before
    assert state() == before
    with pytest.raises(ZeroDivisionError), parity_probe.jax.record(model, tmp_path / "b.h5", functions=FUNCTIONS):
        model.blocks[0](x, jnp.zeros((6, 4)))
        1 / 0
    assert state() == before and Recording(tmp_path / "b.h5").complete == 0 and Recording(tmp_path / "b.h5").paths == PATHS[:11]
    with pytest.raises(TypeError), parity_probe.jax.record(model, tmp_path / "c.h5", functions=FUNCTIONS):
        model(x[..., :3])
    assert state() == before


def test_one_jitted_block_for_all(tmp_path):
    """The same compiled function is called with each block: paths are the blocks' own."""
    model, x, angles = jax_port.Port(), data(), jnp.zeros((6, 4))
    f = nnx.jit(lambda block, x: block(x, angles))
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        for block in model.blocks:
            x = f(block, x)
    r = Recording(tmp_path / "a.h5")
    found = [p for p in r.paths if p.count(".") < 3 and p[-2:] not in (".q", ".k", ".v")]
    assert found == [f"blocks.{i}{p}" for i in range(2) for p in (".norm", ".attn", ".attn[1]", "")]
    assert same(r.output["blocks.1", 0], x) and len(r.weight) == 22


class Holder(nnx.Module):
    """Modules in dicts and lists of lists, a module used twice, one called by super(), one with a scan inside."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        linear = lambda: nnx.Linear(4, 4, rngs=rngs)  # noqa: E731
        wrap = (lambda x: nnx.data(x)) if hasattr(nnx, "data") else lambda x: x
        self.by_name = wrap({"a": linear(), "b": [linear(), linear()]})
        self.shared = linear()
        self.also = self.shared
        self.loud = Loud(4, 4, rngs=rngs)
        self.table = wrap(jnp.arange(4.0))

    def __call__(self, x):
        x = self.by_name["b"][1](self.by_name["a"](x))
        x = self.also(self.shared(x))
        return {"y": self.loud(x), "all": (x + self.table, x > 0)}


class Loud(nnx.Linear):
    def __call__(self, x):
        return 2 * super().__call__(x)


def test_containers_and_repeated_modules(tmp_path):
    model, x = Holder(), data(shape=(3, 4))
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        y = model(x)
    r = Recording(tmp_path / "a.h5")
    assert r.paths == ["by_name.a", "by_name.b.1", "shared", "shared#1", "loud", "", "[1]", "[2]"]
    assert {"table", "by_name.b.0.bias", "shared.kernel"} <= set(r.weight) and "also.kernel" not in r.weight
    assert same(r.output["", 0], y["all"][0]) and same(r.output["[1]", 0], y["all"][1])
    assert same(r.output["[2]", 0], y["y"]) and r.output["[1]", 0].dtype == bool


@pytest.mark.parametrize("jit", [False, True])
def test_remat_and_grad(tmp_path, jit):
    model, x = jax_port.Port(layers=1, remat=True), data()
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    f = jax.value_and_grad(lambda state, x: (nnx.merge(graph, state, rest)(x) ** 2).sum())
    f = jax.jit(f) if jit else f
    value, gradient = f(state, x)
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        again = f(state, x)
    assert same(value, again[0]) and all(map(same, jax.tree_util.tree_leaves(gradient), jax.tree_util.tree_leaves(again[1])))
    r = Recording(tmp_path / "a.h5")
    assert [p for p in PATHS if "_" not in p and "blocks.1" not in p] == [p for p in r.paths if "#" not in p]
    assert np.allclose(r.output["", 0], model(x), atol=1e-5) and np.allclose(r.output["blocks.0", 0], model(x), atol=1e-5)


@pytest.mark.parametrize("jit", [False, True])
def test_vmap(tmp_path, jit):
    model, x = jax_port.Port(layers=1), data()
    f = jax.vmap(lambda x: model(x))
    f = jax.jit(f) if jit else f
    y = f(x)
    with parity_probe.jax.record(model, tmp_path / "b.h5"):
        assert same(f(x), y)
    r = Recording(tmp_path / "b.h5")
    assert np.allclose(r.output["", 0], y, atol=1e-6) and r.output["blocks.0.attn.q", 0].shape == (2, 6, 8)


def test_another_model_of_the_same_class_is_a_stranger(tmp_path):
    model, other, x = jax_port.Port(), jax_port.Port(seed=1), data()
    copy = nnx.merge(*nnx.split(model))
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        other(x)
        copy(x)
    assert Recording(tmp_path / "a.h5").paths == [p for p in PATHS if "_" not in p] and not any("parity" in k for k in vars(copy))


def test_donated_buffers_and_prints(tmp_path, capfd):
    model, x = jax_port.Port(), data()
    graph, state = nnx.split(model)

    def run(state, x):
        jax.debug.print("loud {}", x.shape[0])
        return nnx.merge(graph, state)(x)
    f = jax.jit(run, donate_argnums=1)
    y = f(state, x + 0)
    jax.effects_barrier()
    capfd.readouterr()
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        assert same(f(state, x + 0), y)
        jax.effects_barrier()
    assert capfd.readouterr().out.count("loud") == 1
    assert Recording(tmp_path / "a.h5").paths[-1] == ""
