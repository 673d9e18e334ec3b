"""diffusers' WanTransformer3DModel (text to video): modulation, RMSNorm over the whole width, 3D RoPE, cross-attention, tanh GELU.

In bfloat16 as from_pretrained gives it: norms, time embedding and modulation tables stay float32.
"""
import types

import torch
from diffusers import WanTransformer3DModel
from torch.nn import functional as F

from . import changes as c
from .family import BF16, BOTH, DTYPES, FP32, Family, Fault, rounded, truncated
from .weights import fill, normal

SEED = 202
HEADS, HEAD_DIM, CHANNELS, TEXT_DIM, TEXT = 2, 12, 4, 16, 7
GRID = (2, 4, 6)   # latent frames, height, width; patches of (1, 2, 2): 2 x 2 x 3 tokens
WIDTH = HEADS * HEAD_DIM


def build(dtype):
    model = WanTransformer3DModel(
        num_attention_heads=HEADS, attention_head_dim=HEAD_DIM, in_channels=CHANNELS, out_channels=CHANNELS, text_dim=TEXT_DIM, freq_dim=24,
        ffn_dim=2 * WIDTH, num_layers=2, rope_max_seq_len=8, cross_attn_norm=True)
    fill(model, SEED, {"time_proj.weight": 0.25, "time_proj.bias": 0.4, r"to_[qk]\.weight": 1.3, "ffn.net.0": 1.4})
    kept = model._keep_in_fp32_modules
    for name, p in (*model.named_parameters(), *model.named_buffers()):
        if not any(word in name for word in kept):
            p.data = p.data.to(DTYPES[dtype])
    model.register_to_config(_name_or_path="")
    return model


def run(model, dtype):
    to = DTYPES[dtype]
    model(hidden_states=normal("latents", (1, CHANNELS, *GRID), SEED).to(to), timestep=torch.tensor([713.25]),
          encoder_hidden_states=normal("text", (1, TEXT, TEXT_DIM), SEED).to(to), return_dict=False)


# --- the block, written again with a place for each mistake -----------------------------------------------------------
def block_forward(one=1, swapped=False, gate=True, residual=True, table=lambda t: t, norm=lambda t: t, keep=lambda t, like: t.type_as(like)):
    """`table` acts on the modulation, `norm` on the normed values, `keep` casts the residual stream back."""
    def block(self, x, context, temb, rotary):
        shift, scale, gate1, shift2, scale2, gate2 = table(self.scale_shift_table + temb.float()).chunk(6, dim=1)
        if swapped:
            shift, scale, shift2, scale2 = scale, shift, scale2, shift2
        y = (norm(self.norm1(x.float())) * (one + scale) + shift).type_as(x)
        y = self.attn1(y, None, None, rotary)
        x = keep(x.float() + (y * gate1 if gate else y), x)
        y = self.attn2(self.norm2(x.float()).type_as(context), context, None, None)
        x = (x + y if residual else y).type_as(context)
        y = (norm(self.norm3(x.float())) * (one + scale2) + shift2).type_as(x)
        return (x.float() + self.ffn(y).float() * (gate2 if gate else 1)).type_as(x)
    return block


def blocks(which=(0, 1), **options):
    def put_in(model, patch):
        for i in which:
            c.forward(model.blocks[i], patch, block_forward(**options))
    return put_in


# --- attention, written again -----------------------------------------------------------------------------------------
def rotate(x, cos, sin, sign=1, halves=False):
    """Pairs (2i, 2i+1), in the tables' float32, rounded once to x's dtype; `halves` pairs (i, i + dim/2)."""
    cos, sin = cos[..., 0::2], sin[..., 1::2] * sign
    a, b = (x.chunk(2, -1)) if halves else x.unflatten(-1, (-1, 2)).unbind(-1)
    first, second = a * cos - b * sin, a * sin + b * cos
    return (torch.cat([first, second], -1) if halves else torch.stack([first, second], -1).flatten(-2)).type_as(x)


def complex_rotate(x, cos, sin):
    turn = torch.complex(cos[..., 0::2].contiguous(), sin[..., 1::2].contiguous())
    return torch.view_as_real(torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2).type_as(x)


def attention(turn=rotate, scale=None, heads=lambda x: x.unflatten(2, (HEADS, -1)), join=lambda x: x.flatten(2, 3), wide=False):
    def process(_processor, attn, x, context=None, _mask=None, rotary=None):
        context = x if context is None else context
        q, k, v = attn.to_q(x), attn.to_k(context), attn.to_v(context)
        q, k, v = (heads(t) for t in (attn.norm_q(q), attn.norm_k(k), v))
        if rotary is not None:
            q, k = (t.float() if wide else t for t in (q, k))
            q, k = turn(q, *rotary), turn(k, *rotary)
            v = v.to(q.dtype)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), scale=scale).transpose(1, 2)
        return attn.to_out[1](attn.to_out[0](join(y).type_as(x)))
    return process


def processor(which=(0, 1), **options):
    def put_in(model, patch):
        for i in which:
            attn = model.blocks[i].attn1
            patch(attn, "processor", types.MethodType(attention(**options), attn))
    return put_in


def rope_grid(order=(0, 1, 2), start=0, theta=None, low=False):
    """The tables for tokens in order (frame, row, column); `order` says which axis' position turns which part of a head."""
    def rope(self, x):
        parts = (self.t_dim, self.h_dim, self.w_dim)
        size = (x.shape[2], x.shape[3] // 2, x.shape[4] // 2)
        where = torch.stack(torch.meshgrid(*(torch.arange(n) + start for n in size), indexing="ij"), -1).flatten(0, 2)
        tables = []
        for source in (self.freqs_cos, self.freqs_sin):
            if theta:
                angles = [torch.outer(torch.arange(8).double(), theta ** (-torch.arange(0, d, 2).double() / d)).repeat_interleave(2, 1) for d in parts]
                source = torch.cat([a.cos() if source is self.freqs_cos else a.sin() for a in angles], 1).float()
            table = torch.cat([column[where[:, axis]] for axis, column in zip(order, source.split(parts, 1))], -1)[None, :, None]
            tables.append(rounded(table) if low else table)
        return tuple(tables)
    return lambda model, patch: c.forward(model.rope, patch, rope)


def per_head(self, x):
    y = x.float().unflatten(-1, (HEADS, -1))
    y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + self.eps)
    return (y.flatten(-2) * self.weight.float()).to(x.dtype)


def unpatch_wrong(model, patch):
    """(p_h, p_w, channel) read as (channel, p_h, p_w)."""
    def shuffled(x):
        return x.unflatten(-1, (CHANNELS, 4)).transpose(-1, -2).flatten(-2)
    right = model.forward

    def forward(*args, **kwargs):
        (y,) = right(*args, **kwargs)
        b, ch, f, h, w = y.shape
        tokens = y.reshape(b, ch, f, h // 2, 2, w // 2, 2).permute(0, 2, 3, 5, 4, 6, 1).flatten(4)
        y = shuffled(tokens).reshape(b, f, h // 2, w // 2, 2, 2, ch).permute(0, 6, 1, 2, 4, 3, 5)
        return (y.reshape(b, ch, f, h, w),)
    patch(model, "forward", forward)


def crosswise(model, patch):
    """norm2's affine weights end up in norm3."""
    for b in model.blocks:
        b.norm2.weight, b.norm3.weight = None, b.norm2.weight
        b.norm2.bias, b.norm3.bias = None, b.norm2.bias


def act_layer(function):
    def put_in(model, patch):
        for b in model.blocks:
            c.forward(b.ffn.net[0], patch, lambda self, x: function(self.proj(x)))
    return put_in


def weights_rounded(model, patch):
    for p in model.condition_embedder.time_embedder.parameters():
        p.copy_(rounded(p))


ATTN1, ATTN2 = "blocks.0.attn1", "blocks.0.attn2"
FAULTS = [
    Fault("norm-eps", "norm eps", "blocks.0.norm1",
          lambda m, p: [setattr(n, "eps", 1e-5) for n in c.modules(m, "FP32LayerNorm")], "PyTorch's default 1e-5 for Wan's 1e-6", complete=True),
    Fault("unbiased-variance", "unbiased variance", "blocks.1.norm3", c.on("blocks.1.norm3", lambda m, p: c.forward(m, p, c.layer_norm(c.unbiased))),
          "var() divides by n-1 in PyTorch unless told otherwise", FP32),
    Fault("per-head-norm", "per-head norm", f"{ATTN1}.norm_q",
          lambda m, p: [c.forward(n, p, per_head) for b in m.blocks for n in (b.attn1.norm_q, b.attn1.norm_k)],
          "q and k normalised per head (as SD3, Qwen3) instead of over the whole width", complete=True),
    Fault("missing-gain", "missing norm gain", "blocks.1.attn2.norm_k", lambda m, p: m.blocks[1].attn2.norm_k.weight.fill_(1),
          "norm_k.weight not loaded", BF16),
    Fault("no-one-plus", "one plus forgotten", f"{ATTN1}.to_q", blocks(one=0), "x * scale + shift for x * (1 + scale) + shift"),
    Fault("shift-scale-swapped", "shift and scale swapped", "blocks.1.attn1.to_q", blocks((1,), swapped=True),
          "the six chunks read as scale, shift, gate"),
    Fault("no-gate", "gate missing", "blocks.0.norm2", blocks(gate=False), "the residual added without its gate"),
    Fault("no-residual", "residual missing", "blocks.1.norm3", blocks((1,), residual=False), "the cross-attention's residual left out", FP32),
    Fault("gelu-erf", "GELU form", "blocks.0.ffn.net.0", act_layer(F.gelu), "erf GELU for the tanh form", complete=True),
    Fault("gelu-fast", "GELU form", "blocks.0.ffn.net.0", act_layer(lambda x: (x.float() * torch.sigmoid(1.702 * x.float())).to(x.dtype)),
          "the sigmoid approximation (quick GELU)", FP32),
    Fault("no-silu", "activation", "condition_embedder.act_fn", c.on("condition_embedder.act_fn", lambda m, p: c.forward(m, p, lambda self, x: x.clone())),
          "SiLU before the time projection forgotten", FP32),
    Fault("rope-sign", "RoPE sign", f"{ATTN1}.to_out.0", processor(turn=lambda x, a, b: rotate(x, a, b, sign=-1)),
          "the rotation runs the other way", BF16),
    Fault("rope-axes", "RoPE axis order", "rope", rope_grid(order=(0, 2, 1)), "height and width swapped"),
    Fault("rope-pairing", "RoPE pairing", f"{ATTN1}.to_out.0", processor(turn=lambda x, a, b: rotate(x, a, b, halves=True)),
          "rotate_half for interleaved pairs"),
    Fault("rope-missing", "RoPE missing", "blocks.1.attn1.to_out.0", processor(which=(1,), turn=lambda x, a, b: x),
          "one layer's attention called without its tables"),
    Fault("rope-theta", "RoPE theta", "rope", rope_grid(theta=5000.0), "theta 5000 for 10000", FP32),
    Fault("position", "position off by one", "rope", rope_grid(start=1), "positions counted from one", FP32),
    Fault("attention-scale", "attention scale", f"{ATTN1}.to_out.0", processor(scale=WIDTH**-0.5), "1/sqrt(width) for 1/sqrt(head width)", BF16),
    Fault("q-k-swapped", "weights swapped", f"{ATTN1}.to_q", lambda m, p: [c.swap_weights(b.attn1.to_q, b.attn1.to_k) for b in m.blocks],
          "q and k exchanged in the name map", BF16),
    Fault("norms-crosswise", "weights swapped", "blocks.0.norm2", crosswise, "diffusers#10926: norm2 and norm3 renamed crosswise", BF16),
    Fault("missing-bias", "missing bias", f"{ATTN2}.to_v", lambda m, p: [c.no_bias(b.attn2.to_v) for b in m.blocks],
          "to_v taken for a layer without bias", FP32),
    Fault("transposed", "transposed weight", f"{ATTN1}.to_out.0", lambda m, p: [c.transpose(b.attn1.to_out[0]) for b in m.blocks],
          "a square weight not transposed for the other framework", BF16),
    Fault("heads-permuted", "permuted heads", f"{ATTN1}.to_out.0", processor(join=lambda x: x.transpose(2, 3).flatten(2)),
          "heads joined as (dim, heads) instead of (heads, dim)", FP32),
    Fault("wrong-layer", "wrong layer's weights", "blocks.1.ffn.net.2", lambda m, p: c.same_weights(m.blocks[1].ffn.net[2], m.blocks[0].ffn.net[2]),
          "a slip in the name map: block 0's weight in block 1", FP32),
    Fault("gain", "gain", "blocks.0.attn1.to_v", c.on("blocks.0.attn1.to_v", lambda m, p: c.forward(m, p, c.scaled_product(2e-3))),
          "an FP8 weight's scale rounded to half precision"),
    Fault("gain-1e-2", "gain", "blocks.1.ffn.net.2", c.on("blocks.1.ffn.net.2", lambda m, p: c.forward(m, p, c.scaled_product(-1e-2))),
          "an 8-bit weight's scale taken from the wrong percentile", FP32),
    Fault("gain-3e-4", "gain", "blocks.0.ffn.net.0.proj", c.on("blocks.0.ffn.net.0.proj", lambda m, p: c.forward(m, p, c.scaled_product(3e-4))),
          "a weight's scale from a checkpoint with four digits", BF16),
    Fault("stale", "stale value", "blocks.1.attn2.to_k", lambda m, p: c.stale(m.blocks[1].attn2.to_k, m.blocks[0].attn2.to_k, p),
          "the cached text keys of the first block used by all blocks"),
    Fault("channel-order", "channel order", "", unpatch_wrong, "unpatchify reads (channel, row, column) for (row, column, channel)", FP32),
    Fault("modulation-in-bf16", "extra rounding", f"{ATTN1}.to_q", blocks(table=rounded), "modulation computed in bf16", BF16),
    Fault("norm-in-bf16", "extra rounding", f"{ATTN1}.to_q", blocks(norm=rounded), "the normed value rounded before it is modulated", BF16),
    Fault("rope-in-bf16", "extra rounding", "rope", rope_grid(low=True), "flash-attention#823: cos and sin in bf16", BF16),
    Fault("time-weights-in-bf16", "extra rounding", "condition_embedder.time_embedder.linear_1", weights_rounded,
          "model.to(bfloat16) after loading rounds what from_pretrained keeps in float32", BF16),
    Fault("timestep-in-bf16", "extra rounding", "condition_embedder.timesteps_proj",
          lambda m, p: c.before(m.condition_embedder.timesteps_proj, p, rounded),
          "DiffSynth-Studio#562: the timestep in bf16 (713.25 becomes 712)", BF16),
    Fault("residual-not-rounded", "missing rounding", "blocks.0.norm2", blocks(keep=lambda t, like: t),
          "vllm-omni#6878: a fused kernel skips the bf16 rounding of the residual", BF16, complete=True),
    Fault("q-k-not-rounded", "missing rounding", f"{ATTN1}.to_out.0", processor(wide=True), "rotated q and k stay float32 into the attention", BF16),
    Fault("truncation", "truncation", "blocks.0.norm2", blocks(keep=lambda t, like: truncated(t)),
          "ROCm/aiter#5151: the residual truncated to bf16", BF16),
]

WAN = Family(
    "wan", build, run, SEED, r"blocks\.\d+", FAULTS, neutral=[blocks(), processor(), rope_grid()],
    kernels={"RoPE in complex numbers": processor(turn=complex_rotate)},
    honest={"fp32": ["RoPE in complex numbers", "every kernel another"],
            "bf16": ["every kernel another", "no vector instructions"]},
    company={d: ["products split over K", "attention with online softmax", "norms by the formula", None, "every kernel another"] for d in BOTH})
