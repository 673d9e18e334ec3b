"""parity_probe.jax at level sketch: the same sketches as from its full recording, and the model's results bit by bit."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import parity_probe
from jax_recordings import same

from parity_probe import sketch_files


class Port(nnx.Module):
    def __init__(self):
        self.up, self.down = nnx.Linear(128, 256, rngs=nnx.Rngs(0)), nnx.Linear(256, 128, rngs=nnx.Rngs(1))

    def __call__(self, x):
        return x + self.down(jax.nn.gelu(self.up(x)))


@pytest.mark.parametrize("jitted", [False, True])
def test_a_flax_model(tmp_path, jitted):
    model, x = Port(), jnp.asarray(np.random.RandomState(0).randn(200, 128), jnp.bfloat16)
    run = nnx.jit(lambda m, x: m(x)) if jitted else lambda m, x: m(x)
    want = run(model, x)
    for level in ("module", "sketch"):
        with parity_probe.jax.record(model, tmp_path / f"{level}.h5", level=level):
            assert same(run(model, x), want)
    full, small = (sketch_files._Recording(tmp_path / f"{level}.h5") for level in ("module", "sketch"))
    assert small.file.attrs["level"] == "sketch" and {"up", "down", ""} <= {path for path, _, role, _, _ in small.points() if role == "output"}
    compared = 0
    for (path, call, role, _, a), (*name, _, b) in zip(full.points(), small.points()):
        assert [path, call, role] == name and a["s"] == b["s"] and a["d"] == b["d"]
        if "sketch" in b:
            mine, theirs = full.sketch(a, len(small.file["values"][b["sketch"]["k"]])), small.sketch(b)
            assert np.array_equal(mine.buckets, theirs.buckets) and mine.specials == theirs.specials
            compared += 1
    assert compared >= 6
    with pytest.raises(ValueError, match="level"):
        parity_probe.jax.record(model, tmp_path / "x.h5", level="op")
