"""parity_probe.jax: the line of a boundary is the one of the equation that computed it; eager calls have the line of the function or of the call."""
import linecache
import pathlib

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
import flax.linen as nn

import parity_probe
from parity_probe.show import read_events

HERE = pathlib.Path(__file__)


def scale(x):
    y = jnp.sin(x)
    return y * 3  # function's result


class Block(nnx.Module):
    def __init__(self):
        self.proj = nnx.Linear(4, 4, rngs=nnx.Rngs(0))

    def __call__(self, x):  # begin of Block
        h = self.proj(x)  # library's module
        return scale(h) + x  # module's result


class Linen(nn.Module):
    @nn.compact  # begin of Linen
    def __call__(self, x):
        h = nn.Dense(4, name="proj")(x)  # linen's module
        return jax.jit(scale)(h) + x  # linen's result


def recorded(path):
    with h5py.File(path) as f:
        return {e["path"]: e.get("src") for e in read_events(f) if e["e"] == "point" and e["role"] == "output"}, \
            [e for e in read_events(f) if e["e"] == "point" and e["role"] != "output"]


def place(remark, function):
    line = next(n for n in range(1, 999) if f"  # {remark}\n" in linecache.getline(str(HERE), n))
    return f"{HERE.name}:{line} in {function}"


X = np.ones((2, 4), np.float32)


@pytest.mark.parametrize("jitted", [False, True])
def test_nnx(tmp_path, jitted):
    model = Block()
    call = nnx.jit(lambda m, x: m(x)) if jitted else lambda m, x: m(x)
    with parity_probe.jax.record(model, tmp_path / "a.h5", functions=[scale]):
        call(model, X)
    lines, others = recorded(tmp_path / "a.h5")
    assert lines["proj"] == place("library's module", "__call__")
    if jitted:
        assert lines[""] == place("module's result", "__call__") and lines["/scale.0"] == place("function's result", "scale")
    else:
        assert lines[""] == place("begin of Block", "__call__") and lines["/scale.0"].endswith(" in scale")
    assert others and not any("src" in e for e in others)


@pytest.mark.parametrize("jitted", [False, True])
def test_linen(tmp_path, jitted):
    model = Linen()
    variables = model.init(jax.random.PRNGKey(0), X)
    call = jax.jit(model.apply) if jitted else model.apply
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        call(variables, X)
    lines, _ = recorded(tmp_path / "a.h5")
    assert lines["proj"] == place("linen's module", "__call__")
    assert lines[""] == (place("linen's result", "__call__") if jitted else place("begin of Linen", "__call__"))


def test_primitives(tmp_path):
    with parity_probe.jax.record(jax.jit(scale), tmp_path / "a.h5", primitives=True):
        jax.jit(scale)(X)
    lines, _ = recorded(tmp_path / "a.h5")
    assert lines["/mul.0"] == place("function's result", "scale")
    assert lines["/sin.0"].split(":")[1] == str(int(lines["/mul.0"].split(":")[1].split(" ")[0]) - 1) + " in scale"
