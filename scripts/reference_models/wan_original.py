"""The original repositories' Wan / SkyReels-V2 transformer, written anew as a module tree with their parameter names.

One class for both families; `dtype_path` chooses where it rounds: `sky_ac` (SkyReels-V2 under autocast), `sky_noac`
(SkyReels-V2 diffusion forcing, no autocast), `wan` (Wan2.1). Not in here: padding to a common length, TeaCache, weight
initialisation. Samples are batched in tensors where Wan2.1 keeps lists.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

from .wan_dtypes import F32, F64, Conv3d, LayerNorm, Linear, WanLayerNorm, WanRMSNorm, dtype_path

DEFAULTS = dict(
    model_type="t2v", patch_size=(1, 2, 2), text_len=512, in_dim=16, dim=2048, ffn_dim=8192, freq_dim=256, text_dim=4096,
    out_dim=16, num_heads=16, num_layers=32, inject_sample_info=False, eps=1e-6,
    # constants of the originals that a small recording wants smaller
    image_dim=1280, image_tokens=257, rope_len=1024,
    # frames per causal block; 0: attention is not causal (the originals call set_ar_attention)
    num_frame_per_block=0,
)


def sinusoid(dim, position):
    """cos | sin of position * 10000^(-i / half), all in float64."""
    half = dim // 2
    position = position.to(F64)
    rate = torch.pow(10000, -torch.arange(half).to(position).div(half))
    angle = torch.outer(position, rate)
    return torch.cat([torch.cos(angle), torch.sin(angle)], dim=1)


def rope_table(length, dim, real):
    """Unit complex numbers (length, dim / 2); the frequencies are formed in `real`."""
    exponent = torch.arange(0, dim, 2).to(real).div(dim)
    angle = torch.outer(torch.arange(length), 1.0 / torch.pow(10000, exponent))
    return torch.polar(torch.ones_like(angle), angle)


def rope_apply(x, grid, freqs, real):
    """Turn the pairs of x (batch, tokens, heads, head_dim) by frame, row and column; the result is float32."""
    f, h, w = grid
    pairs = x.size(3) // 2
    frame, row, column = freqs.split([pairs - 2 * (pairs // 3), pairs // 3, pairs // 3], dim=1)
    turn = torch.cat([
        frame[:f].view(f, 1, 1, -1).expand(f, h, w, -1),
        row[:h].view(1, h, 1, -1).expand(f, h, w, -1),
        column[:w].view(1, 1, w, -1).expand(f, h, w, -1)], dim=-1).reshape(f * h * w, 1, -1)
    z = torch.view_as_complex(x.to(real).reshape(*x.shape[:3], -1, 2))
    return torch.view_as_real(z * turn).flatten(3).float()


def attention(q, k, v, path, mask=None):
    """(batch, tokens, heads, head_dim), in `low`; Wan2.1 hands back the query's dtype (a widening, no value changes)."""
    out_dtype = q.dtype if path.wan_layers else path.low
    q, k, v = q.to(path.low), k.to(path.low), v.to(path.low)
    y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask)
    return y.transpose(1, 2).contiguous().to(out_dtype)


def mul_add(x, y, z):
    return x.float() + y.float() * z.float()


def mul_add_add(x, y, z):
    return x.float() * (1 + y) + z


def causal_mask(grid, frames_per_block):
    """(1, 1, tokens, tokens): a token sees its own block of frames and those before it."""
    f, h, w = grid
    block = torch.arange(f // frames_per_block).view(-1, 1).repeat(1, frames_per_block).flatten()
    sees = block.unsqueeze(0) <= block.unsqueeze(1)
    sees = sees.view(f, 1, 1, f, 1, 1).repeat(1, h, w, 1, h, w)
    return sees.reshape(f * h * w, f * h * w).unsqueeze(0).unsqueeze(0)


class WanSelfAttention(nn.Module):
    def __init__(self, dim, num_heads, eps, path):
        super().__init__()
        self.num_heads, self.path = num_heads, path
        for name in "qkvo":
            self.add_module(name, Linear(dim, dim, path.low))
        self.norm_q = WanRMSNorm(dim, eps, path)
        self.norm_k = WanRMSNorm(dim, eps, path)

    def heads(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1)

    def forward(self, x, grid, freqs, mask):
        if not self.path.wan_layers:
            x = x.to(self.q.weight.dtype)
        q = self.heads(self.norm_q(self.q(x)))
        k = self.heads(self.norm_k(self.k(x)))
        v = self.heads(self.v(x))
        q = rope_apply(q, grid, freqs, self.path.rope_real)
        k = rope_apply(k, grid, freqs, self.path.rope_real)
        return self.o(attention(q, k, v, self.path, mask).flatten(2))


class WanT2VCrossAttention(WanSelfAttention):
    def forward(self, x, context):
        q = self.heads(self.norm_q(self.q(x)))
        k = self.heads(self.norm_k(self.k(context)))
        v = self.heads(self.v(context))
        return self.o(attention(q, k, v, self.path).flatten(2))


class WanI2VCrossAttention(WanSelfAttention):
    def __init__(self, dim, num_heads, eps, path, text_len, image_tokens):
        super().__init__(dim, num_heads, eps, path)
        self.k_img = Linear(dim, dim, path.low)
        self.v_img = Linear(dim, dim, path.low)
        self.norm_k_img = WanRMSNorm(dim, eps, path)
        self.text_len, self.image_tokens = text_len, image_tokens

    def forward(self, x, context):
        # SkyReels-V2 cuts after a fixed number of image tokens, Wan2.1 before a fixed number of text tokens
        cut = context.shape[1] - self.text_len if self.path.wan_layers else self.image_tokens
        image, context = context[:, :cut], context[:, cut:]
        q = self.heads(self.norm_q(self.q(x)))
        k = self.heads(self.norm_k(self.k(context)))
        v = self.heads(self.v(context))
        k_img = self.heads(self.norm_k_img(self.k_img(image)))
        v_img = self.heads(self.v_img(image))
        from_image = attention(q, k_img, v_img, self.path)
        from_text = attention(q, k, v, self.path)
        return self.o(from_text.flatten(2) + from_image.flatten(2))


def six_parts(table, e):
    """shift, scale, gate, twice: (batch, 1, dim) each, or per token (batch, tokens, dim)."""
    if e.dim() == 3:
        return (table + e).chunk(6, dim=1)
    return [part.squeeze(1) for part in (table.unsqueeze(2) + e).chunk(6, dim=1)]


class WanAttentionBlock(nn.Module):
    def __init__(self, config, path):
        super().__init__()
        dim, heads, eps = config["dim"], config["num_heads"], config["eps"]
        self.path = path
        self.norm1 = WanLayerNorm(dim, eps, path)
        self.self_attn = WanSelfAttention(dim, heads, eps, path)
        self.norm3 = WanLayerNorm(dim, eps, path, affine=True)
        if config["model_type"] == "i2v":
            self.cross_attn = WanI2VCrossAttention(dim, heads, eps, path, config["text_len"], config["image_tokens"])
        else:
            self.cross_attn = WanT2VCrossAttention(dim, heads, eps, path)
        self.norm2 = WanLayerNorm(dim, eps, path)
        self.ffn = nn.Sequential(
            Linear(dim, config["ffn_dim"], path.low), nn.GELU(approximate="tanh"), Linear(config["ffn_dim"], dim, path.low))
        self.modulation = nn.Parameter(torch.zeros(1, 6, dim))

    def forward(self, x, e, grid, freqs, context, mask):
        step = self.wan_step if self.path.wan_layers else self.sky_step
        return step(x, six_parts(self.modulation, e), grid, freqs, context, mask)

    def sky_step(self, x, e, grid, freqs, context, mask):
        y = self.self_attn(mul_add_add(self.norm1(x), e[1], e[0]), grid, freqs, mask)
        x = mul_add(x, y, e[2])
        dtype = context.dtype   # float32 when image tokens were joined under autocast, else `low`
        x = x + self.cross_attn(self.norm3(x.to(dtype)), context)
        y = self.ffn(mul_add_add(self.norm2(x), e[4], e[3]).to(dtype))
        return mul_add(x, y, e[5]).to(self.path.low)

    def wan_step(self, x, e, grid, freqs, context, mask):
        y = self.self_attn(self.norm1(x).float() * (1 + e[1]) + e[0], grid, freqs, mask)
        x = x + y * e[2]
        x = x + self.cross_attn(self.norm3(x), context)
        y = self.ffn(self.norm2(x).float() * (1 + e[4]) + e[3])
        return x + y * e[5]


class Head(nn.Module):
    """Float32 throughout, in every path."""

    def __init__(self, config, path):
        super().__init__()
        dim = config["dim"]
        self.norm = WanLayerNorm(dim, config["eps"], path, compute=F32)
        self.head = Linear(dim, math.prod(config["patch_size"]) * config["out_dim"], F32)
        self.modulation = nn.Parameter(torch.zeros(1, 2, dim))

    def forward(self, x, e):
        if e.dim() == 2:
            shift, scale = (self.modulation + e.unsqueeze(1)).chunk(2, dim=1)
        else:
            parts = (self.modulation.unsqueeze(2) + e.unsqueeze(1)).chunk(2, dim=1)
            shift, scale = (part.squeeze(1) for part in parts)
        return self.head(self.norm(x) * (1 + scale) + shift)


class MLPProj(nn.Module):
    def __init__(self, n_in, n_out, path):
        super().__init__()
        self.proj = nn.Sequential(
            LayerNorm(n_in, 1e-5, True, path.norm_compute), Linear(n_in, n_in, path.low), nn.GELU(),
            Linear(n_in, n_out, path.low), LayerNorm(n_out, 1e-5, True, path.norm_compute))

    def forward(self, image_embeds):
        return self.proj(image_embeds)


class WanOriginal(nn.Module):
    """config: see DEFAULTS. path_name: sky_ac, sky_noac or wan. low=torch.float32 gives the twin that rounds nowhere.

    Parameters are built in float32; `round_weights_()` puts them where the path keeps them.
    """

    def __init__(self, config, path_name, low=torch.bfloat16):
        super().__init__()
        unknown = set(config) - set(DEFAULTS)
        if unknown:
            raise ValueError(f"unknown configuration keys: {', '.join(sorted(unknown))}")
        self.path = path = dtype_path(path_name, low)
        c = {**DEFAULTS, **config}
        self.config = {"_class_name": type(self).__name__, **c, "dtype_path": path_name, "low": str(low).split(".")[-1]}
        dim = c["dim"]
        self.patch_embedding = Conv3d(c["in_dim"], dim, c["patch_size"], low)
        self.text_embedding = nn.Sequential(
            Linear(c["text_dim"], dim, low), nn.GELU(approximate="tanh"), Linear(dim, dim, low))
        self.time_embedding = nn.Sequential(Linear(c["freq_dim"], dim, F32), nn.SiLU(), Linear(dim, dim, F32))
        self.time_projection = nn.Sequential(nn.SiLU(), Linear(dim, dim * 6, F32))
        if c["inject_sample_info"]:
            self.fps_embedding = nn.Embedding(2, dim)
            self.fps_projection = nn.Sequential(Linear(dim, dim, F32), nn.SiLU(), Linear(dim, dim * 6, F32))
        self.blocks = nn.ModuleList(WanAttentionBlock(c, path) for _ in range(c["num_layers"]))
        self.head = Head(c, path)
        if c["model_type"] == "i2v":
            self.img_emb = MLPProj(c["image_dim"], dim, path)
        # a plain attribute, as in the originals: a buffer would be cast with the weights
        d = dim // c["num_heads"]
        self.freqs = torch.cat(
            [rope_table(c["rope_len"], n, path.rope_real) for n in (d - 4 * (d // 6), 2 * (d // 6), 2 * (d // 6))], dim=1)

    def round_weights_(self):
        return self.to(self.path.stored)

    def embed_time(self, t, fps, grid):
        """e (batch, dim) and e0 (batch, 6, dim); with a time step per frame (batch, tokens, dim), (batch, 6, tokens, dim)."""
        dim, per_frame = self.config["dim"], t.dim() == 2
        s = sinusoid(self.config["freq_dim"], t.flatten())
        e = self.time_embedding(s.to(self.patch_embedding.weight.dtype if self.path.rounds_sinusoid else F32))
        e0 = self.time_projection(e).unflatten(1, (6, dim))
        if self.config["inject_sample_info"]:
            rate = self.fps_projection(self.fps_embedding(fps).float()).unflatten(1, (6, dim))
            # the originals' order, kept: rows of e0 run sample by sample, this repeats frame by frame, so that with
            # several samples of different rate the rates mix
            e0 = e0 + (rate.repeat(t.shape[1], 1, 1) if per_frame else rate)
        if per_frame:
            b, f = t.shape
            e = e.view(b, f, 1, 1, dim).repeat(1, 1, *grid[1:], 1).flatten(1, 3)
            e0 = e0.view(b, f, 1, 1, 6, dim).repeat(1, 1, *grid[1:], 1, 1).flatten(1, 3).transpose(1, 2).contiguous()
        return e, e0

    def forward(self, x, t, context, clip_fea=None, y=None, fps=None):
        """x, y (batch, channels, frames, height, width), t (batch,) or (batch, frames), context (batch, text, text_dim),
        clip_fea (batch, image tokens, image_dim), fps (batch,) of 0 or 1."""
        if y is not None:
            x = torch.cat([x, y], dim=1)
        x = self.patch_embedding(x)
        grid = tuple(x.shape[2:])
        x = x.flatten(2).transpose(1, 2)
        if self.path.wan_layers:
            x = x.contiguous()
        frames_per_block = self.config["num_frame_per_block"]
        mask = causal_mask(grid, frames_per_block) if frames_per_block else None
        e, e0 = self.embed_time(t, fps, grid)
        context = self.text_embedding(context)
        if clip_fea is not None:
            context = torch.cat([self.img_emb(clip_fea), context], dim=1)   # float32 if either is
        for block in self.blocks:
            x = block(x, e0, grid, self.freqs, context, mask)
        return self.unpatchify(self.head(x, e), grid).float()

    def unpatchify(self, x, grid):
        patch, channels = self.config["patch_size"], self.config["out_dim"]
        x = torch.einsum("bfhwpqrc->bcfphqwr", x.view(x.shape[0], *grid, *patch, channels))
        return x.reshape(x.shape[0], channels, *(n * p for n, p in zip(grid, patch)))
