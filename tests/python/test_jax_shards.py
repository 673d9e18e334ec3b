"""jax_qwen3.py on a mesh of 8 devices (of the host), weights divided by NamedSharding: recorded as 8 ranks, judged green; then with what goes wrong between devices."""
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import jax_qwen3
import parity_probe
from jax_recordings import ROOT, Recording, Reference, check_honest, compare, named, quick_compilation
from test_jax_qwen3 import FUNCTIONS, MAP

MESH = Mesh(np.array(jax.devices()), ("tp",))
COLUMNS, ROWS = P("tp", None), P(None, "tp")  # weights are (out, in)
DIVIDED = {"q_proj": COLUMNS, "k_proj": COLUMNS, "v_proj": COLUMNS, "gate_proj": COLUMNS, "up_proj": COLUMNS, "lm_head": COLUMNS, "o_proj": ROWS, "down_proj": ROWS}


@pytest.fixture(scope="module", params=["fp32", "bf16"])
def reference(request):
    return Reference(ROOT / f"reference_dumps/selftest/qwen3.{request.param}.h5")


def placed(name, weight, dtype):
    spec = next((spec for part, spec in DIVIDED.items() if part in name), P())
    return jax.device_put(jnp.asarray(weight, dtype), NamedSharding(MESH, spec))


def record(reference, path, dtype=jnp.float32):
    """The first call of the recording alone, on all devices."""
    weights = {name: placed(name, x, dtype) for name, x in reference.weights.items()}
    config = reference.config
    ids = jax.device_put(reference.inputs[0]["input_ids"], NamedSharding(MESH, P()))
    jax.clear_caches()
    with quick_compilation(), parity_probe.jax.record(jax_qwen3.forward, path, functions=FUNCTIONS, weights=weights, mesh=MESH):
        logits, _ = jax_qwen3.forward(weights, ids, None, layers=config["num_hidden_layers"], head_dim=config["head_dim"],
                                      theta=config["rope_parameters"]["rope_theta"])
    jax.clear_caches()
    return logits


def mlp(reduce):
    """As a port writes it by hand: each device its part of the width, and a sum over all."""
    def of_device(x, gate, up, down):
        y = jax_qwen3.linear(jax.nn.silu(jax_qwen3.linear(x, gate)) * jax_qwen3.linear(x, up), down)
        return reduce(y)
    split = functools.partial(jax.shard_map, mesh=MESH, in_specs=(P(), COLUMNS, COLUMNS, ROWS), out_specs=P(), check_vma=False)(of_device)
    return named("mlp", lambda w, name, x: split(x, *(w[f"{name}.{part}.weight"] for part in ("gate_proj", "up_proj", "down_proj"))))


def row_of(reference, folder, path):
    status, report = compare(reference.path, folder / "cand.rank*.h5", "--map", mlp_map(folder))
    return status, next(op for op in report["ops"] if op["path"] == path and op["call"] == 0)


def mlp_map(folder):
    """Without the functions inside the feed-forward module, which shard_map hides; linear and silu are counted without them."""
    numbers, lines = iter(range(100)), []
    for line in MAP.read_text().splitlines():
        left, _, right = line.partition(" = ")
        inside = ".mlp." in left
        if "/linear" in right and not inside:
            right = f"/linear.{next(numbers)}"
        if not inside:
            lines.append(f"{left} = {right}" if right else left)
    (folder / "own.map").write_text("\n".join(lines))
    return folder / "own.map"


def test_eight_devices_are_green(tmp_path):
    reference = Reference(ROOT / "reference_dumps/selftest/qwen3.fp32.h5")
    record(reference, tmp_path / "cand.h5")
    assert len(list(tmp_path.glob("cand.rank?.h5"))) == 8
    report = compare(reference.path, tmp_path / "cand.rank*.h5", "--map", MAP)[1]
    others = [(op["path"], op["call"], op["verdict"], op["diagnosis"]) for op in report["ops"] if op["verdict"] not in ("pass", "missing")]
    assert not others, others[:3]
    assert sum(op["verdict"] == "pass" for op in report["ops"]) >= 40
    assert Recording(tmp_path / "cand.rank3.h5").about["shard"] == {"mesh": [["tp", 8]], "at": [3], "specs": []}


FAULTS = {"all-reduce missing": lambda y: y, "all-reduce doubled": lambda y: jax.lax.psum(jax.lax.psum(y, "tp"), "tp")}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_between_devices_has_its_name(reference, name, tmp_path, monkeypatch):
    dtype = jnp.bfloat16 if ".bf16" in str(reference.path) else jnp.float32
    monkeypatch.setattr(jax_qwen3, "mlp", mlp(FAULTS[name]))
    record(reference, tmp_path / "cand.h5", dtype)
    status, row = row_of(reference, tmp_path, "model.layers.0.mlp")
    assert status == 1 and row["diagnosis"].startswith(name), row["diagnosis"]


def test_a_sum_by_hand_is_green(tmp_path, monkeypatch):
    reference = Reference(ROOT / "reference_dumps/selftest/qwen3.fp32.h5")
    monkeypatch.setattr(jax_qwen3, "mlp", mlp(lambda y: jax.lax.psum(y, "tp")))
    record(reference, tmp_path / "cand.h5")
    _, row = row_of(reference, tmp_path, "model.layers.0.mlp")
    assert row["verdict"] == "pass", row["diagnosis"]
