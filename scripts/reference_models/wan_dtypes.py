"""Where the original Wan-family code rounds: three cast placements as data, and the few layers whose casts depend on them.

The originals get their casts from an autocast context around (or not around) the model. Here each cast stands in the module
that makes it, so the model records as ordinary PyTorch and runs the same on every device.
"""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

F32, F64 = torch.float32, torch.float64


@dataclass(frozen=True)
class DtypePath:
    """One placement of the casts. `low` is bfloat16, or float32 for the twin that rounds nowhere."""

    name: str
    low: torch.dtype
    rounds_weights: bool      # parameters are kept in `low`; otherwise in float32 and cast at each use
    autocast: bool            # an outer autocast: layer norms run in float32, linear layers cast their arguments
    rounds_sinusoid: bool     # the time step's sinusoid is rounded to `low` before the time MLP
    wan_layers: bool          # Wan2.1's layer norm, RMS norm and residuals instead of SkyReels-V2's
    rope_real: torch.dtype    # precision of the rotary table and of the rotation

    @property
    def stored(self):
        return self.low if self.rounds_weights else F32

    @property
    def norm_compute(self):
        """What a layer norm casts its arguments to; None: it takes them as they come."""
        return F32 if self.autocast else None


# SkyReels-V2 T2V/I2V (autocast), SkyReels-V2 diffusion forcing (none), Wan2.1 (autocast, float32 weights).
_PATHS = {
    "sky_ac": dict(rounds_weights=True, autocast=True, rounds_sinusoid=True, wan_layers=False, rope_real=F32),
    "sky_noac": dict(rounds_weights=True, autocast=False, rounds_sinusoid=True, wan_layers=False, rope_real=F32),
    "wan": dict(rounds_weights=False, autocast=True, rounds_sinusoid=False, wan_layers=True, rope_real=F64),
}


def dtype_path(name, low=torch.bfloat16):
    if name not in _PATHS:
        raise ValueError(f"unknown cast placement {name!r} (have {', '.join(_PATHS)})")
    return DtypePath(name=name, low=low, **_PATHS[name])


class Linear(nn.Linear):
    """As under autocast: input, weight and bias are cast to `compute`; nothing happens where they already are."""

    def __init__(self, n_in, n_out, compute):
        super().__init__(n_in, n_out)
        self.compute = compute

    def forward(self, x):
        return F.linear(x.to(self.compute), self.weight.to(self.compute), self.bias.to(self.compute))


class Conv3d(nn.Conv3d):
    def __init__(self, n_in, n_out, kernel, compute):
        super().__init__(n_in, n_out, kernel_size=kernel, stride=kernel)
        self.compute = compute

    def forward(self, x):
        return F.conv3d(x.to(self.compute), self.weight.to(self.compute), self.bias.to(self.compute), self.stride)


class LayerNorm(nn.LayerNorm):
    def __init__(self, dim, eps, affine, compute):
        super().__init__(dim, eps=eps, elementwise_affine=affine)
        self.compute = compute

    def forward(self, x):
        return F.layer_norm(self.cast(x), self.normalized_shape, self.cast(self.weight), self.cast(self.bias), self.eps)

    def cast(self, x):
        return x if x is None or self.compute is None else x.to(self.compute)


class WanLayerNorm(LayerNorm):
    """Wan2.1 returns the input's dtype (bf16 in its first block, float32 after); SkyReels-V2 what the kernel gives."""

    def __init__(self, dim, eps, path, affine=False, compute="path"):
        super().__init__(dim, eps, affine, path.norm_compute if compute == "path" else compute)
        self.keeps_dtype = path.wan_layers

    def forward(self, x):
        y = super().forward(x)
        return y.type_as(x) if self.keeps_dtype else y


class WanRMSNorm(nn.Module):
    """SkyReels-V2 multiplies the float32 value with the weight; Wan2.1 rounds it to the input's dtype before."""

    def __init__(self, dim, eps, path):
        super().__init__()
        self.eps = eps
        self.rounds_first = path.wan_layers
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        wide = x.float()
        unit = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (unit.type_as(x) if self.rounds_first else unit) * self.weight
