"""Random weights for any module: seeded by name, nothing is zero or one, sizes keep activations near rms 1.

The rule of scripts/selftest_models/weights.py, for all owners.
"""
import re

import torch
from torch import nn

from selftest_models.weights import normal

_TABLE = re.compile(r"scale_shift_table|modulation")            # rows of shift, scale, gate
_TOKENS = re.compile(r"token|embed|pos|quer|register|latents?$|query")   # bare parameters that are added to or joined with activations
_GAIN = re.compile(r"beta|gamma|lambda|scale|gain|alpha|weight_g|original0")


def _table(n):
    """Gates near 0.75, so that every branch reaches the output."""
    rows = n.shape[-2]
    mean, std = (torch.tensor([v[i % 3] for i in range(rows)]).view(-1, 1) for v in ((0.0, 0.0, 0.75), (0.3, 0.3, 0.15)))
    return mean + std * n


def _fan_in(owner, p):
    if isinstance(owner, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        return p.numel() // p.shape[1]
    if type(owner).__name__ == "Conv1D":             # transformers': (in, out)
        return p.shape[0]
    if isinstance(owner, (nn.Linear, nn.modules.conv._ConvNd)) or p.dim() == 2 or hasattr(owner, "original1"):
        return p[0].numel()
    return p.shape[-1]                               # experts: (expert, out, in)


def _matrix(name, owner, p, n, seed):
    axis = 1 if type(owner).__name__ == "Conv1D" else 0
    spread = torch.exp(0.4 * normal(name + " spread", (p.shape[axis],), seed))   # output features of different size
    shape = [1] * p.dim()
    shape[axis] = -1
    return n * spread.view(shape) / _fan_in(owner, p) ** 0.5


def draw(name, owner, p, seed):
    """The float32 values of parameter `name` of module `owner`."""
    n, leaf = normal(name, tuple(p.shape), seed), name.rpartition(".")[2]
    if p.dim() == 0:   # one that starts at zero would hide its whole branch
        return (p.detach().float() if p != 0 else 1.0) * (1 + 0.1 * n)
    if isinstance(owner, nn.Embedding):
        return (0.5 if "bias" in name else 1.0) * n
    if _TABLE.search(leaf) and p.dim() > 1:
        return _table(n)
    if leaf.endswith("bias") and p.dim() == 1:
        return 0.25 * n
    if _GAIN.search(leaf) or (p.dim() == 1 and not _TOKENS.search(leaf)):
        return 1 + 0.25 * n.clamp(-3, 3)
    if leaf not in ("weight", "original1") and (p.dim() == 1 or _TOKENS.search(leaf) or "bias" in leaf):
        return 0.5 * n
    return _matrix(name, owner, p, n, seed)


@torch.no_grad()
def fill(model, seed):
    """Fills every parameter, and the buffers of a checkpoint (statistics of batch norms, codebooks), in place."""
    owners = dict(model.named_modules())
    for name, p in model.named_parameters():
        p.copy_(draw(name, owners[name.rpartition(".")[0]], p, seed))
    saved = set(model.state_dict())
    for name, b in model.named_buffers():
        if name.endswith("running_mean"):
            b.copy_(0.25 * normal(name, tuple(b.shape), seed))
        elif name.endswith("running_var"):
            b.copy_(torch.exp(0.5 * normal(name, tuple(b.shape), seed)))
        elif name in saved and b.is_floating_point() and b.dim() > 1 and b.min() == b.max():
            b.copy_(normal(name, tuple(b.shape), seed))
    return model.eval().requires_grad_(False)
