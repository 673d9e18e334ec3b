"""Random weights with a real spread, the same rule for every model: nothing is zero, one, or of one size only."""
import re
import zlib

import torch

# shift, scale, gate of the modulation tables: gates near 0.75, so that every branch reaches the output
_TABLE = {"mean": (0.0, 0.0, 0.75), "std": (0.3, 0.3, 0.15)}
_QUIET = re.compile(r"(time_projection\.1|time_proj|fps_projection\.(net\.)?2)\.weight$")   # adds to the tables
_NORM = re.compile(r"norm\w*\.(weight|gamma)$|img_emb\.proj\.[04]\.weight$")


def _draw(name, like, seed):
    """Its own generator per name: one parameter more does not change the others."""
    g = torch.Generator().manual_seed(seed * 1_000_003 + zlib.crc32(name.encode()))
    normal = torch.randn(like.shape, generator=g)
    if name.endswith(("modulation", "scale_shift_table")):
        rows = like.shape[1]
        mean, std = ([_TABLE[key][i % 3] for i in range(rows)] for key in ("mean", "std"))
        return torch.tensor(mean).view(1, rows, 1) + normal * torch.tensor(std).view(1, rows, 1)
    if _NORM.search(name):
        return 1 + 0.25 * normal.clamp(-3, 3)
    if name.endswith("bias"):
        return 0.1 * normal if "time_proj" in name or "fps_projection" in name else 0.25 * normal
    if "embedding.weight" in name and like.dim() == 2:   # a lookup table
        return normal
    fan_in = like[0].numel()
    rows = torch.exp(0.4 * torch.randn(like.shape[0], generator=g))   # output features of different size
    gain = 0.25 if _QUIET.search(name) else 1.0
    return gain * normal * rows.view(-1, *[1] * (like.dim() - 1)) / fan_in**0.5


@torch.no_grad()
def spread_weights(model, seed):
    """Fill every parameter of `model` in place; deterministic in (parameter name, shape, seed)."""
    for name, parameter in model.named_parameters():
        parameter.copy_(_draw(name, parameter, seed))
    return model
