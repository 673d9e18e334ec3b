"""transformers' Qwen3ForCausalLM (recorded: two calls, the second with a key-value cache) ported to plain JAX functions (jax_qwen3.py), recorded through
`functions=[...]` around one jitted function: judged green by parity-check; then faults in the port, each red, with the module at which it begins and its name."""
import contextlib

import jax
import jax.numpy as jnp
import pytest

import jax_qwen3
import parity_probe
from jax_recordings import ROOT, Reference, check_fault, check_honest, named, quick_compilation

FUNCTIONS = [f"jax_qwen3:{name}" for name in ("rms_norm", "linear", "rope_apply", "attention", "attend", "silu", "mlp", "residual")]
MAP = ROOT / "tests/python/jax_qwen3.map"


@pytest.fixture(scope="module")
def reference():
    return Reference(ROOT / "reference_dumps/selftest/qwen3.fp32.h5")


def record(reference, path, change=lambda weights: weights):
    """Records both calls, as a user would: nothing in the port knows of it."""
    weights = change({name: jnp.asarray(x) for name, x in reference.weights.items()})
    config, past = reference.config, None
    jax.clear_caches()  # what a fault patched must not be found compiled
    with parity_probe.jax.record(jax_qwen3.forward, path, functions=FUNCTIONS, weights=weights):
        for inputs in reference.inputs:
            _, past = jax_qwen3.forward(weights, inputs["input_ids"], past, layers=config["num_hidden_layers"], head_dim=config["head_dim"],
                                        theta=config["rope_parameters"]["rope_theta"])
    jax.clear_caches()
    return path


@pytest.mark.parametrize("options, compilation", [(["--map", MAP], contextlib.nullcontext), ([], quick_compilation)],
                         ids=["map, compiled as users do", "paired without a map, compiled as the faults are"])
def test_the_port_is_green(reference, tmp_path, options, compilation):
    with compilation():
        recorded = record(reference, tmp_path / "a.h5")
    report = check_honest(reference.path, recorded, *options)
    assert len(report["ops"]) == 90
    modules = {name.rsplit(".", 1)[0] for name in reference.weights if "inv_freq" not in name and "embed_tokens" not in name}
    assert {(m, call) for m in modules for call in (0, 1)} <= {(row["path"], row["call"]) for row in report["ops"]}


def swapped(one, other):
    return lambda weights: {**weights, one: weights[other], other: weights[one]}


def interleaved(x, angles):
    half = angles[..., :angles.shape[-1] // 2]
    even, odd = x[..., ::2], x[..., 1::2]
    return jnp.stack([even * jnp.cos(half) - odd * jnp.sin(half), even * jnp.sin(half) + odd * jnp.cos(half)], -1).reshape(x.shape)


def tiled(q, k, v):
    return tuple(jnp.tile(t, (1, q.shape[1] // t.shape[1], 1, 1)) for t in (k, v))


def unmasked(q, k, v):
    k, v = (jnp.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def mask_off_by_one(q, k, v):
    k, v = (jnp.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool), k.shape[2] - q.shape[2] + 1)
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v


ATTENTION, NORM, ROPE, ANGLES = jax_qwen3.attention, jax_qwen3.rms_norm, jax_qwen3.rope_apply, jax_qwen3.rope_angles


def across_heads(x, weight, eps=1e-6):
    if x.ndim < 4:
        return NORM(x, weight, eps)
    return x * jax.lax.rsqrt(jnp.mean(x * x, (-1, -2), keepdims=True) + eps) * weight


# name: (what is patched in the port, what is done to its weights, where it begins (in which call), its name in the diagnosis)
_L = "model.layers.0"
_A = f"{_L}.self_attn"
_SDPA = f"{_A}/_scaled_dot_product_flash_attention_for_cpu.0"
FAULTS = {
    "norm eps": ({"rms_norm": lambda x, w, eps=1e-5: NORM(x, w, 1e-5)}, None, f"{_L}.input_layernorm", "norm eps"),
    "one plus": ({"rms_norm": lambda x, w, eps=1e-6: NORM(x, w + 1, eps)}, None, f"{_L}.input_layernorm", "one plus forgotten"),
    "norm across heads": ({"rms_norm": across_heads}, None, f"{_A}.q_norm", "per-head norm"),
    "rope sign": ({"rope_apply": lambda x, a: ROPE(x, -a)}, None, f"{_A}/add.0", "RoPE sign"),
    "rope pairing": ({"rope_apply": interleaved}, None, f"{_A}/add.0", "RoPE pairing"),
    "positions begin anew": ({"rope_angles": lambda p, dim, theta: ANGLES(p - p[0], dim, theta)}, None, (f"{_A}/add.0", 1), "position off by one"),
    "attention scale": ({"attention": lambda q, k, v: ATTENTION(q * 8 ** 0.5, k, v)}, None, _SDPA, "attention scale"),
    "mask off by one": ({"attention": mask_off_by_one}, None, _SDPA, "mask off by one"),
    "mask missing": ({"attention": unmasked}, None, _SDPA, "causal mask missing"),
    "key heads tiled": ({"attention": lambda q, k, v: ATTENTION(q, *tiled(q, k, v))}, None, _SDPA, "permuted heads"),
    "key and value swapped": ({}, swapped(f"{_A}.k_proj.weight", f"{_A}.v_proj.weight"), f"{_A}.k_proj", "weights swapped"),
    "gate and up swapped": ({}, swapped(f"{_L}.mlp.gate_proj.weight", f"{_L}.mlp.up_proj.weight"), f"{_L}.mlp.gate_proj", "weights swapped"),
    "gelu for silu": ({"silu": lambda x: jax.nn.gelu(x, approximate=False)}, None, f"{_L}.mlp.act_fn", "activation"),
    "residual forgotten": ({"residual": lambda x, y: y}, None, f"{_L}/add.0", "residual missing"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_named(reference, tmp_path, monkeypatch, name):
    patches, change, path, fault = FAULTS[name]
    for attribute, x in patches.items():
        monkeypatch.setattr(jax_qwen3, attribute, named(attribute, x))
    path, call = path if isinstance(path, tuple) else (path, 0)
    with quick_compilation():
        recorded = record(reference, tmp_path / "a.h5", change or (lambda w: w))
    check_fault(reference.path, recorded, (path, call, fault), "--map", MAP)
