"""Random weights for the tiny models: seeded by name, nothing is zero or one, activations stay near rms 1.

Drawn by numpy, whose generator gives the same bits whatever instruction set PyTorch is held to.
"""
import re
import zlib

import numpy as np
import torch
from torch import nn


def normal(name, shape, seed):
    """Standard normal float32 tensor (shape), its own stream per name."""
    stream = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    return torch.from_numpy(stream.standard_normal(shape, dtype=np.float32))


def integers(name, shape, high, seed):
    stream = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    return torch.from_numpy(stream.integers(0, high, shape))


def _draw(name, owner, like, seed, sizes):
    n = normal(name, tuple(like.shape), seed)
    factor = next((f for pattern, f in sizes.items() if re.search(pattern, name)), 1.0)
    if name.endswith("scale_shift_table"):   # shift, scale, gate: gates near 0.75, so that every branch reaches the output
        mean, std = (torch.tensor([v[i % 3] for i in range(like.shape[1])]).view(1, -1, 1) for v in ((0, 0, 0.75), (0.3, 0.3, 0.15)))
        return mean + std * n
    if name.endswith("bias") and like.dim() == 1:
        return 0.25 * factor * n
    if like.dim() == 1 or "gamma" in name:   # gains
        return factor * (1 + 0.25 * n.clamp(-3, 3))
    if isinstance(owner, nn.Embedding):
        return factor * n
    rows_first = type(owner).__name__ not in ("Conv1D", "GptOssExperts")   # the others hold (..., in, out)
    fan_in = like[0].numel() if rows_first else like.shape[-2]
    spread = torch.exp(0.4 * normal(name + " spread", (like.shape[0] if rows_first else like.shape[-1],), seed))
    spread = spread.view(-1, *[1] * (like.dim() - 1)) if rows_first else spread
    return factor * n * spread / fan_in**0.5


@torch.no_grad()
def fill(model, seed, sizes=None):
    """Fills every parameter in place; `sizes` maps name patterns to factors, first match wins."""
    owners = dict(model.named_modules())
    for name, p in model.named_parameters():
        p.copy_(_draw(name, owners[name.rpartition(".")[0]], p, seed, sizes or {}))
    return model.eval().requires_grad_(False)
