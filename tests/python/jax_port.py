"""A transformer as people port them to JAX: modules in lists, helper functions, a jitted rope. flax.nnx of 0.10 and 0.12."""
import jax
import jax.numpy as jnp
from flax import nnx


def module_list(modules):
    return nnx.List(modules) if hasattr(nnx, "List") else modules


def array(variable):
    return variable[...] if hasattr(variable, "get_value") else variable.value


def mul_add(x, scale, shift):
    return x * scale + shift


@jax.jit
def rope_apply(x, angles):  # (batch, seq, dim), (seq, dim / 2)
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


class Attention(nnx.Module):
    def __init__(self, dim, dtype, rngs):
        self.q, self.k, self.v = (nnx.Linear(dim, dim, param_dtype=dtype, dtype=dtype, rngs=rngs) for _ in range(3))
        self.proj = module_list([nnx.Linear(dim, dim, param_dtype=dtype, dtype=dtype, rngs=rngs)])

    def __call__(self, x, angles):
        q, k = rope_apply(self.q(x), angles), rope_apply(self.k(x), angles)
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, -1)
        return self.proj[0](weights @ self.v(x)), weights


class Block(nnx.Module):
    def __init__(self, dim, dtype, rngs):
        self.norm = nnx.LayerNorm(dim, param_dtype=dtype, dtype=dtype, rngs=rngs)
        self.attn = Attention(dim, dtype, rngs)
        self.gate = nnx.Param(jnp.full((dim,), 0.3, dtype))

    def __call__(self, x, angles):
        y, _ = self.attn(self.norm(x), angles)
        return mul_add(y, array(self.gate), x)


class Port(nnx.Module):
    def __init__(self, dim=8, layers=2, dtype=jnp.float32, seed=0, remat=False):
        self.remat = remat
        rngs = nnx.Rngs(seed)
        self.blocks = module_list([Block(dim, dtype, rngs) for _ in range(layers)])
        self.dropout = nnx.Dropout(0.1, rngs=rngs, deterministic=True)

    def __call__(self, x):
        angles = jnp.arange(x.shape[-2])[:, None] * 0.1 ** jnp.arange(x.shape[-1] // 2)
        for block in self.blocks:
            x = nnx.remat(lambda b, x: b(x, angles))(block, x) if self.remat else block(x, angles)
        return self.dropout(x)
