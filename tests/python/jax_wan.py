"""A port of diffusers' WanTransformer3DModel (text to video) to flax.nnx, as people write it: channels last, half-size RoPE tables, names of its own in the
feed-forward and the condition, weights taken from a PyTorch state dict."""
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jax_port import array, module_list


def rope_tables(frames, height, width, head_dim, theta=10000.0):
    """cos, sin (tokens, head_dim / 2): a third of the pairs turns with the row, a third with the column, the rest with the frame."""
    spatial = 2 * (head_dim // 6)
    angles = []
    for axis, (size, dim) in enumerate([(frames, head_dim - 2 * spatial), (height, spatial), (width, spatial)]):
        turns = np.arange(size)[:, None] / theta ** (np.arange(0, dim, 2) / dim)
        shape = [1, 1, 1, dim // 2]
        shape[axis] = size
        angles.append(np.broadcast_to(turns.reshape(shape), (frames, height, width, dim // 2)))
    angles = np.concatenate(angles, -1).reshape(frames * height * width, -1)
    return jnp.asarray(np.cos(angles), jnp.float32), jnp.asarray(np.sin(angles), jnp.float32)


def rope_apply(x, cos, sin):  # (batch, tokens, heads, head_dim)
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = cos[:, None], sin[:, None]
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def split_heads(x, heads):  # (batch, tokens, dim) -> (batch, tokens, heads, head_dim)
    return x.reshape(*x.shape[:2], heads, -1)


def dot_product_attention(q, k, v):  # (batch, tokens, heads, head_dim)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def modulate(x, scale, shift):
    return x * (1 + scale) + shift


def gated(x, y, gate):
    return x + y * gate


def sinusoid(timestep, dim):
    angles = timestep[:, None] * jnp.exp(-np.log(10000) * jnp.arange(dim // 2) / (dim // 2))
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)


def gelu(x):
    return jax.nn.gelu(x, approximate=True)


def variance(x):
    return jnp.mean((x - x.mean(-1, keepdims=True)) ** 2, -1, keepdims=True)


class LayerNorm(nnx.Module):
    def __init__(self, dim, epsilon, rngs, affine=False):
        self.epsilon = epsilon
        if affine:
            self.scale, self.bias = nnx.Param(jnp.ones(dim)), nnx.Param(jnp.zeros(dim))

    def __call__(self, x):
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(variance(x) + self.epsilon)
        return x * array(self.scale) + array(self.bias) if hasattr(self, "scale") else x


class RMSNorm(nnx.Module):
    def __init__(self, dim, epsilon, rngs):
        self.epsilon, self.scale = epsilon, nnx.Param(jnp.ones(dim))

    def __call__(self, x):
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + self.epsilon) * array(self.scale)


def nnx_layer_norm(dim, epsilon, rngs, affine=False):
    return nnx.LayerNorm(dim, epsilon=epsilon, use_bias=affine, use_scale=affine, rngs=rngs)


OWN, NNX = (LayerNorm, RMSNorm), (nnx_layer_norm, nnx.RMSNorm)


class Attention(nnx.Module):
    def __init__(self, dim, heads, eps, norms, rngs):
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.proj = (nnx.Linear(dim, dim, rngs=rngs) for _ in range(4))
        self.norm_q, self.norm_k = (norms[1](dim, epsilon=eps, rngs=rngs) for _ in range(2))

    def __call__(self, x, context, rope=None):
        q, k, v = self.norm_q(self.to_q(x)), self.norm_k(self.to_k(context)), self.to_v(context)
        q, k, v = (split_heads(y, self.heads) for y in (q, k, v))
        if rope is not None:
            q, k = rope_apply(q, *rope), rope_apply(k, *rope)
        return self.proj(dot_product_attention(q, k, v).reshape(x.shape))


class FeedForward(nnx.Module):
    def __init__(self, dim, hidden, rngs):
        self.up, self.down = nnx.Linear(dim, hidden, rngs=rngs), nnx.Linear(hidden, dim, rngs=rngs)

    def __call__(self, x):
        return self.down(gelu(self.up(x)))


class Block(nnx.Module):
    def __init__(self, dim, hidden, heads, eps, norms, rngs):
        self.norm1, self.norm3 = (norms[0](dim, epsilon=eps, rngs=rngs) for _ in range(2))
        self.norm2 = norms[0](dim, epsilon=eps, rngs=rngs, affine=True)
        self.attn1, self.attn2 = Attention(dim, heads, eps, norms, rngs), Attention(dim, heads, eps, norms, rngs)
        self.ffn = FeedForward(dim, hidden, rngs)
        self.scale_shift_table = nnx.Param(jnp.zeros((1, 6, dim)))

    def __call__(self, x, context, time, rope):
        shift, scale, gate, c_shift, c_scale, c_gate = jnp.split(array(self.scale_shift_table) + time, 6, 1)  # each (batch, 1, dim)
        normed = modulate(self.norm1(x), scale, shift)
        x = gated(x, self.attn1(normed, normed, rope), gate)
        x = x + self.attn2(self.norm2(x), context)
        return gated(x, self.ffn(modulate(self.norm3(x), c_scale, c_shift)), c_gate)


class Wan(nnx.Module):
    def __init__(self, config, rngs, norms=OWN):
        dim = config["num_attention_heads"] * config["attention_head_dim"]
        self.patch_size, self.head_dim, self.freq_dim = tuple(config["patch_size"]), config["attention_head_dim"], config["freq_dim"]
        self.patch_embedding = nnx.Conv(config["in_channels"], dim, self.patch_size, self.patch_size, padding="VALID", rngs=rngs)
        self.time_1, self.time_2, self.time_proj = nnx.Linear(self.freq_dim, dim, rngs=rngs), nnx.Linear(dim, dim, rngs=rngs), nnx.Linear(dim, 6 * dim, rngs=rngs)
        self.text_1, self.text_2 = nnx.Linear(config["text_dim"], dim, rngs=rngs), nnx.Linear(dim, dim, rngs=rngs)
        self.blocks = module_list([Block(dim, config["ffn_dim"], config["num_attention_heads"], config["eps"], norms, rngs) for _ in range(config["num_layers"])])
        self.norm_out = norms[0](dim, epsilon=config["eps"], rngs=rngs)
        self.proj_out = nnx.Linear(dim, config["out_channels"] * int(np.prod(self.patch_size)), rngs=rngs)
        self.scale_shift_table = nnx.Param(jnp.zeros((1, 2, dim)))

    def __call__(self, x, timestep, text):  # x (batch, channels, frames, height, width)
        x = self.patch_embedding(x.transpose(0, 2, 3, 4, 1))  # (batch, frames, height, width, dim)
        batch, *grid, dim = x.shape
        rope, x = rope_tables(*grid, self.head_dim), x.reshape(batch, -1, dim)
        time = self.time_2(jax.nn.silu(self.time_1(sinusoid(timestep, self.freq_dim))))
        modulation = self.time_proj(jax.nn.silu(time)).reshape(batch, 6, dim)
        text = self.text_2(gelu(self.text_1(text)))
        for block in self.blocks:
            x = block(x, text, modulation, rope)
        shift, scale = jnp.split(array(self.scale_shift_table) + time[:, None], 2, 1)
        return unpatchify(self.proj_out(modulate(self.norm_out(x), scale, shift)), grid, self.patch_size)


def unpatchify(x, grid, patch):  # (batch, tokens, patch volume * channels) -> (batch, channels, frames, height, width)
    x = x.reshape(x.shape[0], *grid, *patch, -1).transpose(0, 7, 1, 4, 2, 5, 3, 6)
    return x.reshape(*x.shape[:2], *(n * p for n, p in zip(grid, patch)))


_OWN = {"condition_embedder.time_embedder.linear_1": "time_1", "condition_embedder.time_embedder.linear_2": "time_2", "condition_embedder.time_proj": "time_proj",
        "condition_embedder.text_embedder.linear_1": "text_1", "condition_embedder.text_embedder.linear_2": "text_2",
        "ffn.net.0.proj": "ffn.up", "ffn.net.2": "ffn.down", "to_out.0": "proj"}


def load(model, state):
    """Sets the model's parameters from {PyTorch name: array}; KeyError for one that is not there."""
    for name, x in state.items():
        if name.startswith("rope."):
            continue
        for theirs, own in _OWN.items():
            name = name.replace(theirs, own)
        *steps, last = name.split(".")
        module = model
        for step in steps:
            module = module[int(step)] if step.isdigit() else getattr(module, step)
        if last == "weight":
            last = "scale" if x.ndim == 1 else "kernel"
            x = x.transpose(2, 3, 4, 1, 0) if x.ndim == 5 else x.T
        parameter = getattr(module, last)
        assert array(parameter).shape == x.shape, name
        set_array(parameter, jnp.asarray(x))
    return model


def set_array(parameter, x):
    if hasattr(parameter, "set_value"):
        parameter.set_value(x)
    else:
        parameter.value = x
