"""parity_probe.jax at levels sketch and stats: the same as from its full recording, and the model's results bit by bit."""
import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import parity_probe
from jax_recordings import same

from parity_probe import sketch_files
from parity_probe.show import read_events


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


def test_statistics(tmp_path):
    """Level stats: the same points as at level sketch, each with what plain numpy finds."""
    model, x = Port(), jnp.asarray(np.random.RandomState(0).randn(200, 128), jnp.bfloat16)
    run = nnx.jit(lambda m, x: m(x))
    want = run(model, x)
    for level in ("module", "sketch", "stats"):
        with parity_probe.jax.record(model, tmp_path / f"{level}.h5", level=level):
            assert same(run(model, x), want)
    full = sketch_files._Recording(tmp_path / "module.h5")
    with h5py.File(tmp_path / "stats.h5") as f, h5py.File(tmp_path / "sketch.h5") as g:
        assert f.attrs["level"] == "stats" and not len(f["values"])
        found = {(e["path"], e["call"], e["role"]): e for e in read_events(f) if e["e"] == "point"}
        assert list(found) == [(e["path"], e["call"], e["role"]) for e in read_events(g) if e["e"] == "point"] and len(found) >= 6
    for path, call, role, _, value in full.points():
        e, values = found[path, call, role], np.asarray(full.file["values"][value["k"]][()]).astype(np.float64)
        assert (e["d"], e["s"], e["stats"]["count"], e["stats"]["max"]) == (value["d"], value["s"], values.size, values.max())
        assert e["stats"]["mean"] == pytest.approx(values.mean(), abs=1e-12) and e["stats"]["std"] == pytest.approx(values.std(), rel=1e-12, abs=1e-12)
