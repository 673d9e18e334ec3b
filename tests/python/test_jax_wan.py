"""diffusers' WanTransformer3DModel (an embedded reference dump) ported to flax.nnx (jax_wan.py): judged green by parity-check; then faults in the port, each
red, with the module at which it begins and its name."""
import functools

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import jax_wan
import parity_probe
from jax_port import array
from jax_recordings import ROOT, Reference, check_fault, check_honest, named, quick_compilation

FUNCTIONS = [f"jax_wan:{name}" for name in ("rope_apply", "dot_product_attention", "modulate", "gated", "gelu", "sinusoid")]
MAP = ROOT / "tests/python/jax_wan.map"


@pytest.fixture(scope="module")
def reference():
    return Reference(ROOT / "reference_dumps/diffusers-wan-t2v.fp32.h5")


@functools.cache
def loaded(reference, norms):
    return jax_wan.load(jax_wan.Wan(reference.config, nnx.Rngs(0), norms), reference.weights)


def ported(reference, norms=jax_wan.OWN):
    return nnx.clone(loaded(reference, norms))


def record(model, reference, path, jit=True):
    """Records one call, as a user would: nothing in the model knows of it."""
    inputs = [jnp.asarray(reference.inputs[0][name]) for name in ("hidden_states", "timestep", "encoder_hidden_states")]
    run = nnx.jit(lambda m, *args: m(*args)) if jit else lambda m, *args: m(*args)
    with parity_probe.jax.record(model, path, functions=FUNCTIONS):
        run(model, *inputs)
    return path


def check_green(reference, recorded, *options):
    """{reference's path: port's path} of what was compared: every module that has weights is among it."""
    report = check_honest(reference.path, recorded, *options)
    paths = {row["path"]: row["candidate_path"] for row in report["ops"]}
    modules = {name.rsplit(".", 1)[0] for name in reference.weights if not name.startswith("rope.") and "scale_shift_table" not in name}
    assert modules <= paths.keys(), modules - paths.keys()
    return paths, report["warnings"]


HONEST = {"eager": (jax_wan.OWN, False), "nnx.jit": (jax_wan.OWN, True), "nnx.jit, nnx.LayerNorm and nnx.RMSNorm": (jax_wan.NNX, True)}


@pytest.mark.parametrize("name", HONEST)
def test_the_port_is_green(reference, tmp_path, name):
    norms, jit = HONEST[name]
    paths, _ = check_green(reference, record(ported(reference, norms), reference, tmp_path / "a.h5", jit), "--map", MAP)
    assert len(paths) == 68


def test_the_port_is_green_without_a_map(reference, tmp_path):
    """Other names, and a convolution with its channels last under the same name; recorded as the faults are."""
    with quick_compilation():
        recorded = record(ported(reference), reference, tmp_path / "a.h5")
    paths, warnings = check_green(reference, recorded)
    assert len(paths) == 66 and paths["patch_embedding"] == "patch_embedding" and any("perm(0,4,1,2,3)" in text for text in warnings)


def weight(module, name, change):
    """Changes one parameter."""
    parameter = getattr(module, name)
    jax_wan.set_array(parameter, change(array(parameter)))


def half_split(x, cos, sin):
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([first * cos[:, None] - second * sin[:, None], first * sin[:, None] + second * cos[:, None]], -1)


def per_head(self, x):
    y = x.reshape(*x.shape[:-1], 2, -1)
    y = y / jnp.sqrt(jnp.mean(y * y, -1, keepdims=True) + self.epsilon)
    return y.reshape(x.shape) * array(self.scale)


def unbiased(x):
    return jnp.sum((x - x.mean(-1, keepdims=True)) ** 2, -1, keepdims=True) / (x.shape[-1] - 1)


HONEST_ATTENTION, HONEST_ROPE = jax_wan.dot_product_attention, jax_wan.rope_apply


def interleaved(x, heads):
    return x.reshape(*x.shape[:2], -1, heads).swapaxes(2, 3)


# name: (what is done to the model and to the port's source, where it begins, its name in the diagnosis)
_B, _ATTENTION = "blocks.0", "blocks.0.attn1/_scaled_dot_product_flash_attention_for_cpu.0"
FAULTS = {
    "norm eps": (lambda m, patch: setattr(m.blocks[0].norm1, "epsilon", 1e-5), f"{_B}.norm1", "norm eps"),
    "unbiased variance": (lambda m, patch: patch("variance", unbiased), f"{_B}.norm1", "unbiased variance"),
    "gelu": (lambda m, patch: patch("gelu", lambda x: jax.nn.gelu(x, approximate=False)), "condition_embedder.text_embedder.act_1", "GELU form"),
    "missing bias": (lambda m, patch: weight(m.blocks[0].ffn.up, "bias", jnp.zeros_like), "blocks.0.ffn.net.0.proj", "missing bias"),
    "attention scale": (lambda m, patch: patch("dot_product_attention", lambda q, k, v: HONEST_ATTENTION(q * 2 ** -0.5, k, v)), _ATTENTION, "attention scale"),
    "transposed": (lambda m, patch: weight(m.blocks[0].attn1.to_v, "kernel", jnp.transpose), f"{_B}.attn1.to_v", "transposed weight"),
    "q and k swapped": (lambda m, patch: patch("dot_product_attention", lambda q, k, v: HONEST_ATTENTION(k, q, v) if q.shape == k.shape else HONEST_ATTENTION(q, k, v)),
                        _ATTENTION, "weights swapped"),
    "rope sign": (lambda m, patch: patch("rope_apply", lambda x, cos, sin: HONEST_ROPE(x, cos, -sin)), _ATTENTION, "RoPE sign"),
    "rope pairing": (lambda m, patch: patch("rope_apply", half_split), _ATTENTION, "RoPE pairing"),
    "residual forgotten": (lambda m, patch: patch("gated", lambda x, y, gate: y * gate), f"{_B}/add.3", "residual missing"),
    "one plus forgotten": (lambda m, patch: patch("modulate", lambda x, scale, shift: x * scale + shift), f"{_B}/add.2", "one plus forgotten"),
    "scale and shift swapped": (lambda m, patch: patch("modulate", lambda x, scale, shift: x * (1 + shift) + scale), f"{_B}/add.2", "shift and scale swapped"),
    "per-head norm": (lambda m, patch: patch("RMSNorm.__call__", per_head), f"{_B}.attn1.norm_q", "per-head norm"),
    "heads interleaved": (lambda m, patch: patch("split_heads", interleaved), _ATTENTION, "permuted heads"),
    "sine before cosine": (lambda m, patch: patch("sinusoid", lambda t, dim, honest=jax_wan.sinusoid: jnp.roll(honest(t, dim), dim // 2, -1)),
                           "condition_embedder.timesteps_proj", "channel order"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_named(reference, tmp_path, monkeypatch, name):
    seed, path, fault = FAULTS[name]
    model = ported(reference)

    def patch(attribute, x):
        *owner, last = attribute.split(".")
        monkeypatch.setattr(getattr(jax_wan, owner[0]) if owner else jax_wan, last, named(last, x))
    seed(model, patch)
    with quick_compilation():
        recorded = record(model, reference, tmp_path / "a.h5")
    check_fault(reference.path, recorded, (path, 0, fault), "--map", MAP)
