"""A piece of diffusers' AutoencoderKLWan: conv_in, one attention block, one up block that doubles time, the output layers.

Three latent frames go through one by one and share the causal caches of the convolutions, which is where ports of this decoder go wrong. Built from
diffusers' own modules in the order of its decoder; the loop is that of AutoencoderKLWan._decode.
"""
import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import WanAttentionBlock, WanCausalConv3d, WanRMS_norm, WanUpBlock
from torch import nn
from torch.nn import functional as F

from . import changes as c
from .family import BF16, DTYPES, FP32, Family, Fault, truncated
from .weights import fill, normal

SEED = 206
LATENT, WIDTH, FRAMES, HEIGHT, COLUMNS, CACHE = 4, 8, 3, 3, 4, 2


class VaeDecoderPiece(nn.Module):
    """z (1, LATENT, frames, height, width) -> frames in [-1, 1] (1, 3, 1 + 2 (frames - 1), 2 height, 2 width)."""

    def __init__(self):
        super().__init__()
        self.conv_in = WanCausalConv3d(LATENT, WIDTH, 3, padding=1)
        self.attention = WanAttentionBlock(WIDTH)
        self.up_block = WanUpBlock(WIDTH, WIDTH, 0, upsample_mode="upsample3d")
        self.norm_out = WanRMS_norm(WIDTH // 2, images=False)
        self.nonlinearity = nn.SiLU()
        self.conv_out = WanCausalConv3d(WIDTH // 2, 3, 3, padding=1)

    def cached(self, conv, x, caches, at):
        """A causal convolution that sees the last CACHE frames before x (1, channels, 1 or 2, h, w)."""
        i, at[0] = at[0], at[0] + 1
        before, caches[i] = caches[i], x[:, :, -CACHE:].clone()
        if before is not None and caches[i].shape[2] < CACHE:
            caches[i] = torch.cat([before[:, :, -1:], caches[i]], 2)
        return conv(x, before)

    def forward(self, z):
        caches, frames = [None] * 8, []
        for part in z.split(1, dim=2):
            at = [0]
            x = self.attention(self.cached(self.conv_in, part, caches, at))
            x = self.up_block(x, feat_cache=caches, feat_idx=at)
            frames.append(self.cached(self.conv_out, self.nonlinearity(self.norm_out(x)), caches, at))
        return torch.cat(frames, 2).clamp(-1, 1)


def build(dtype):
    return fill(VaeDecoderPiece(), SEED, {r"conv_out\.weight": 0.6, r"to_qkv\.weight": 1.5}).to(DTYPES[dtype])


def run(model, dtype):
    model(normal("latents", (1, LATENT, FRAMES, HEIGHT, COLUMNS), SEED).to(DTYPES[dtype]))


# --- faults -----------------------------------------------------------------------------------------------------------
def caches(change, only=None):
    """Every causal convolution (or the one at `only`) gets change(cache) instead of its cache."""
    def put_in(model, patch):
        for name, conv in model.named_modules():
            if isinstance(conv, WanCausalConv3d) and only in (None, name):
                patch(conv, "forward", lambda x, cache_x=None, right=conv.forward: right(x, None if cache_x is None else change(cache_x)))
    return put_in


def not_causal(model, patch):
    """Padded on both sides in time, as an ordinary Conv3d."""
    conv = model.conv_in
    patch(conv, "_padding", (*conv._padding[:4], 1, 1))
    right = conv.forward
    patch(conv, "forward", lambda x, cache_x=None: right(x, None))


def norm(epsilon=None, axis=1, wide=False, low=False):
    """The reference rounds the unit vector, after the factor and after the gain; `wide` rounds once, `low` also inside."""
    def forward(self, x):
        v = x if low else x.float()
        size = v.norm(2.0, axis, keepdim=True)
        y = v / (size + epsilon if epsilon else size.clamp_min(1e-12))
        y = y if wide else y.to(x.dtype)
        return (y * self.scale * (self.gamma.float() if wide else self.gamma) + self.bias).to(x.dtype)
    return c.forwards("WanRMS_norm", forward)


def thirds(order):
    """to_qkv's channels in another order."""
    def put_in(model, patch):
        for p in model.attention.to_qkv.parameters():
            p.copy_(torch.cat([p.chunk(3)[i] for i in order]))
    return put_in


def frames_interleaved_wrong(model, patch):
    """The doubled channels read as (channel, frame) instead of (frame, channel)."""
    c.after(model.up_block.upsamplers[0].time_conv, patch, lambda y: y.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2))


def first_frame_doubled(model, patch):
    """The first chunk treated as the others: its one frame becomes two, of which the port keeps the first."""
    up = model.up_block.upsamplers[0]
    right = up.forward

    def forward(x, feat_cache=None, feat_idx=[0]):
        if feat_cache is not None and feat_cache[feat_idx[0]] is None:
            x = WanCausalConv3d.forward(up.time_conv, x)[:, :WIDTH]   # no call of the module: the reference has none here
            feat_cache[feat_idx[0]], feat_idx[0] = "Rep", feat_idx[0] + 1
            b, ch, t, h, w = x.shape
            y = up.resample(x.permute(0, 2, 1, 3, 4).reshape(b * t, ch, h, w))
            return y.view(b, t, *y.shape[1:]).permute(0, 2, 1, 3, 4)
        return right(x, feat_cache=feat_cache, feat_idx=feat_idx)
    patch(up, "forward", forward)


def output_range(model, patch):
    """(x / 2 + 1/2) clamped to [0, 1] and back: the port's own range, lost below zero."""
    c.after(model, patch, lambda y: y.clamp(0, 1))


def truncating(model, patch):
    conv = model.conv_in
    patch(conv, "forward", lambda x, cache_x=None: truncated(F.conv3d(
        F.pad(torch.cat([x if cache_x is None else cache_x, x], 2)[:, :, (1 if cache_x is None else 0):].float(),
              (*conv._padding[:4], 2 - (0 if cache_x is None else cache_x.shape[2]), 0)), conv.weight.float(), conv.bias.float())))


UP, TIME = "up_block.resnets.0", "up_block.upsamplers.0.time_conv"
FAULTS = [
    Fault("one-frame-cache", "causal cache", "conv_in", caches(lambda t: t[:, :, -1:]), "the cache holds one frame instead of two", call=2),
    Fault("no-cache", "causal cache", "conv_in", caches(lambda t: torch.zeros_like(t)), "each chunk starts from zeros", FP32, call=1),
    Fault("rolled-cache", "causal cache", f"{UP}.conv2", caches(lambda t: t.roll(1, 2), only=f"{UP}.conv2"),
          "the ring buffer read one frame off", BF16, call=2),
    Fault("not-causal", "causal cache", "conv_in", not_causal, "padding on both sides in time"),
    Fault("norm-eps", "norm eps", "attention.norm", norm(epsilon=1e-2), "an epsilon added to the norm as in a mean square", FP32),
    Fault("norm-axis", "wrong normalised axis", "attention.norm", norm(axis=-1), "normalised over the last axis, as in channels-last", FP32),
    Fault("missing-gain", "missing norm gain", "norm_out", lambda m, p: m.norm_out.gamma.fill_(1), "norm_out.gamma not in the name map", BF16),
    Fault("missing-bias", "missing bias", f"{UP}.conv1", lambda m, p: m.up_block.resnets[0].conv1.bias.zero_(),
          "the convolution's bias left out", BF16),
    Fault("q-k-order", "weights swapped", "attention.to_qkv", thirds((2, 0, 1)), "qkv stored as k, v, q", FP32),
    Fault("frame-channels", "channel order", TIME, frames_interleaved_wrong, "doubled channels read as (channel, frame)", BF16),
    Fault("first-chunk", "causal cache", "up_block.upsamplers.0.resample.0", first_frame_doubled, "the first chunk treated as the others", BF16),
    Fault("relu", "activation", "nonlinearity", lambda m, p: c.forward(m.nonlinearity, p, lambda self, x: F.relu(x)), "ReLU for SiLU", FP32),
    Fault("range", "clamp limit", "", output_range, "clamped to [0, 1] for [-1, 1]"),
    Fault("norm-in-bf16", "extra rounding", "attention.norm", norm(low=True), "the vector's length summed in bf16", BF16),
    Fault("norm-in-fp32", "missing rounding", "attention.norm", norm(wide=True), "one rounding at the end for the reference's three", BF16, complete=True),
    Fault("truncation", "truncation", "conv_in", truncating, "the convolution's result truncated", BF16),
]

WAN_VAE = Family(
    "wan-vae", build, run, SEED, r"up_block\.(resnets\.0|upsamplers\.0)|attention", FAULTS,
    neutral=[caches(lambda t: t), norm(), thirds((0, 1, 2))],
    honest={"fp32": ["convolutions tap by tap"], "bf16": ["attention in float32"]},
    company={"fp32": ["convolutions tap by tap", "attention with online softmax", None], "bf16": ["attention in float32", "norms by the formula", None]})
