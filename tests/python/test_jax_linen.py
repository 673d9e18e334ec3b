"""parity_probe.jax on flax.linen: paths from scopes, whatever applies the module; lifted transforms."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import parity_probe
from jax_recordings import Recording, same


class Layer(nn.Module):
    dim: int

    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(self.dim)(nn.gelu(nn.LayerNorm(name="norm")(x)))


class Encoder(nn.Module):
    """Layers in a list, a tied output layer (an apply of its own), batch statistics."""
    dim: int = 8

    def setup(self):
        self.wte = nn.Embed(10, self.dim)
        self.layers = [Layer(self.dim) for _ in range(2)]
        self.bn = nn.BatchNorm(use_running_average=True)
        self.head = nn.Dense(10, use_bias=False)

    def __call__(self, ids):
        x = self.wte(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head.apply({"params": {"kernel": self.wte.variables["params"]["embedding"].T}}, self.bn(x)), x

    def _embedding(self):
        return self.wte

    def encode(self, ids):
        return self.layers[0](self.wte(ids))


PATHS = ["wte", "layers_0.norm", "layers_0.Dense_0", "layers_0", "layers_1.norm", "layers_1.Dense_0", "layers_1", "bn", "head", "", "[1]"]
IDS = np.array([[1, 2, 3], [4, 5, 9]])


def modes():
    yield "apply", lambda m, v: lambda x: m.apply(v, x)
    yield "bound", lambda m, v: m.bind(v)
    yield "jit", lambda m, v: (lambda f: lambda x: f(v, x))(jax.jit(m.apply))


@pytest.mark.parametrize("name, mode", list(modes()))
def test_modules_by_path(tmp_path, name, mode):
    model = Encoder()
    variables = model.init(jax.random.key(0), IDS)
    run = mode(model, variables)
    before = run(IDS)
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        inside = run(IDS)
        model.init(jax.random.key(1), IDS)  # initialising is not a call
        Layer(8).init_with_output(jax.random.key(1), before[1])  # a stranger
    assert all(map(same, before, inside)) and all(map(same, before, run(IDS)))
    r = Recording(tmp_path / "a.h5")
    assert r.paths == PATHS and r.about["config"] == {"dim": 8} and r.about["flax"] and r.model == "Encoder"
    assert {"wte.embedding", "layers_1.Dense_0.kernel", "layers_0.norm.scale", "bn.mean", "bn.scale"} <= set(r.weight) == r.linked
    assert same(r.weight["layers_0.Dense_0.kernel"], variables["params"]["layers_0"]["Dense_0"]["kernel"])
    dense = r.weight["layers_1.Dense_0.kernel"], r.weight["layers_1.Dense_0.bias"]
    assert np.allclose(r.output["layers_1.Dense_0", 0], r.input["layers_1.Dense_0", 0] @ dense[0] + dense[1], atol=1e-6)
    assert np.allclose(r.output["head", 0], r.output["bn", 0] @ r.weight["wte.embedding"].T, atol=1e-5) and np.allclose(r.output["", 0], inside[0], atol=1e-6)


def test_another_method_of_the_model(tmp_path):
    model = Encoder()
    variables = model.init(jax.random.key(0), IDS)
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        model.apply(variables, IDS, method=model.encode)
    assert Recording(tmp_path / "a.h5").paths == ["wte", "layers_0.norm", "layers_0.Dense_0", "layers_0", ""]
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        model.apply(variables, IDS, method=lambda m, ids: m._embedding()(ids))
    r = Recording(tmp_path / "a.h5")
    assert r.paths == ["wte"] and set(r.weight) == {"wte.embedding"}


class Stack(nn.Module):
    """Layers under nn.scan, optionally rematerialised."""
    remat: bool

    @nn.compact
    def __call__(self, x):
        inner = nn.remat(Step) if self.remat else Step
        return nn.scan(inner, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)(name="layers")(x, None)[0]


class Step(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return Layer(4, name="layer")(x), None


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("remat", [False, True])
def test_scan_over_layers(tmp_path, remat, jit):
    model, x = Stack(remat), jnp.asarray(np.random.RandomState(0).randn(2, 4), jnp.float32)
    variables = model.init(jax.random.key(0), x)
    run = jax.jit(model.apply) if jit else model.apply
    y = run(variables, x)
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        assert same(run(variables, x), y)
    r = Recording(tmp_path / "a.h5")
    of_layer = [p for p in r.paths if p.split("#")[0].endswith("layer")]
    assert of_layer == ["layers.layer", "layers.layer#1", "layers.layer#2"], r.paths
    for i in range(3):  # each iteration gets what the one before returned
        assert np.allclose(r.input["layers.layer", i], x if i == 0 else r.output["layers.layer", i - 1], atol=1e-6)
        kernel, bias = (r.weight[f"layers.layer.Dense_0.{n}"][i] for n in ("kernel", "bias"))
        assert np.allclose(r.output["layers.layer.Dense_0", i], r.input["layers.layer.Dense_0", i] @ kernel + bias, atol=1e-6)
    assert np.allclose(r.output["layers.layer", 2], y, atol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_loops_and_branches(tmp_path, jit):
    """How often a while loop runs is known by nobody before; of a branch only what ran is recorded."""
    layer = Layer(4)
    x = jnp.ones((2, 4))
    variables = layer.init(jax.random.key(0), x)
    step = lambda x: layer.apply(variables, x)  # noqa: E731

    def run(x, n):
        _, x = jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(c[1])), (0, x))
        return jax.lax.cond(n > 2, lambda x: step(x) + 1, lambda x: x, x)
    run = jax.jit(run) if jit else run
    expected = run(x, 2), run(x, 3)
    for n, y in zip((2, 3), expected):
        with parity_probe.jax.record(layer, tmp_path / "a.h5"):
            assert same(run(x, n), y)
        r = Recording(tmp_path / "a.h5")
        assert [p for p in r.paths if p.split("#")[0] == ""] == ["", "#1", "#2", "#3"][:n + (n > 2)], r.paths
        assert np.allclose(r.output["", n - 1 if n == 2 else 3], y - (n > 2), atol=1e-6)


