"""A port of transformers' Qwen3ForCausalLM to plain JAX functions, as people write it: a dictionary of weights under their PyTorch names, a key-value cache
that is handed on, one jitted `forward`."""
import functools

import jax
import jax.numpy as jnp


def rms_norm(x, weight, eps=1e-6):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * weight


def linear(x, weight):  # (out, in), as PyTorch keeps it
    return x @ weight.T


def rope_angles(positions, head_dim, theta):
    angles = positions[:, None] * theta ** (-jnp.arange(0, head_dim, 2) / head_dim)
    return jnp.concatenate([angles, angles], -1)  # (tokens, head_dim)


def rope_apply(x, angles):  # (batch, heads, tokens, head_dim)
    first, second = jnp.split(x, 2, -1)
    return x * jnp.cos(angles) + jnp.concatenate([-second, first], -1) * jnp.sin(angles)


def attention(q, k, v):  # (batch, heads, tokens, head_dim); the queries are the last of the keys
    k, v = (jnp.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool), k.shape[2] - q.shape[2])
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v


def heads(x, dim):  # (batch, tokens, heads * dim) -> (batch, tokens, heads, dim)
    return x.reshape(*x.shape[:2], -1, dim)


def attend(w, name, x, angles, past, head_dim):
    q = rms_norm(heads(linear(x, w[f"{name}.q_proj.weight"]), head_dim), w[f"{name}.q_norm.weight"]).swapaxes(1, 2)
    k = rms_norm(heads(linear(x, w[f"{name}.k_proj.weight"]), head_dim), w[f"{name}.k_norm.weight"]).swapaxes(1, 2)
    v = heads(linear(x, w[f"{name}.v_proj.weight"]), head_dim).swapaxes(1, 2)
    q, k = rope_apply(q, angles), rope_apply(k, angles)
    if past is not None:
        k, v = (jnp.concatenate(pair, 2) for pair in zip(past, (k, v)))
    y = attention(q, k, v).swapaxes(1, 2)
    return linear(y.reshape(*x.shape[:2], -1), w[f"{name}.o_proj.weight"]), (k, v)


def silu(x):
    return jax.nn.silu(x)


def mlp(w, name, x):
    return linear(silu(linear(x, w[f"{name}.gate_proj.weight"])) * linear(x, w[f"{name}.up_proj.weight"]), w[f"{name}.down_proj.weight"])


def residual(x, y):
    return x + y


@functools.partial(jax.jit, static_argnames=("layers", "head_dim", "theta"))
def forward(w, ids, past, layers, head_dim, theta):  # ids (batch, tokens); past: None, or (keys, values) of each layer
    begin = 0 if past is None else past[0][0].shape[2]
    x, present = w["model.embed_tokens.weight"][ids], []
    angles = rope_angles(begin + jnp.arange(ids.shape[1]), head_dim, theta)
    for i in range(layers):
        name = f"model.layers.{i}"
        y, kv = attend(w, f"{name}.self_attn", rms_norm(x, w[f"{name}.input_layernorm.weight"]), angles, past and past[i], head_dim)
        x = residual(x, y)
        x = residual(x, mlp(w, f"{name}.mlp", rms_norm(x, w[f"{name}.post_attention_layernorm.weight"])))
        present.append(kv)
    return linear(rms_norm(x, w["model.norm.weight"]), w["lm_head.weight"]), present
