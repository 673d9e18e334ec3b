"""transformers' UMT5EncoderModel: RMSNorm, a relative position bias in every layer, unscaled attention with padding, gated gelu_new."""
import torch
from torch.nn import functional as F
from transformers import UMT5Config, UMT5EncoderModel

from . import changes as c
from .family import BF16, DTYPES, FP32, Family, Fault, truncated
from .weights import fill, integers

SEED = 205
WIDTH, HEADS, HEAD_DIM, INNER, VOCABULARY, BATCH, TOKENS, PADDING = 24, 3, 8, 40, 32, 2, 7, 2


def build(dtype):
    config = UMT5Config(d_model=WIDTH, d_kv=HEAD_DIM, num_heads=HEADS, d_ff=INNER, num_layers=2, vocab_size=VOCABULARY, relative_attention_num_buckets=8,
                        relative_attention_max_distance=16, attn_implementation="sdpa", dropout_rate=0.0)
    return fill(UMT5EncoderModel(config), SEED, {r"SelfAttention\.[qk]\.": 0.6, r"relative_attention_bias": 0.8}).to(DTYPES[dtype])


def run(model, _dtype):
    mask = torch.ones(BATCH, TOKENS, dtype=torch.int64)
    mask[1, TOKENS - PADDING:] = 0   # the second prompt is shorter
    model(input_ids=integers("ids", (BATCH, TOKENS), VOCABULARY, SEED), attention_mask=mask)


# --- faults -----------------------------------------------------------------------------------------------------------
def attentions(model):
    return c.modules(model, "UMT5Attention")


def shared_bias(model, patch):
    first, second = attentions(model)
    second.relative_attention_bias.weight.copy_(first.relative_attention_bias.weight)


def distance(change):
    """change(memory position - query position) goes into the buckets."""
    def put_in(model, patch):
        for a in attentions(model):
            patch(a, "_relative_position_bucket", lambda d, right=a._relative_position_bucket: right(change(d)))
    return put_in


def mask_late(model, patch):
    """One padded token too many is seen."""
    for block in model.encoder.block:
        right = block.layer[0].SelfAttention.forward
        patch(block.layer[0].SelfAttention, "forward",
              lambda x, *a, right=right, attention_mask=None, **kw: right(x, *a, attention_mask=attention_mask.roll(1, -1) | attention_mask, **kw))


def no_residual(self, x):
    return self.DenseReluDense(self.layer_norm(x))


def right_residual(self, x):
    return x + self.dropout(self.DenseReluDense(self.layer_norm(x)))


def truncating_norm(self, x):
    y = x.float()
    y = truncated(y * torch.rsqrt((y * y).mean(-1, keepdim=True) + self.variance_epsilon))
    return self.weight * y


def act(function):
    return lambda model, patch: [c.forward(m.act, patch, lambda self, x: function(x)) for m in c.modules(model, "UMT5DenseGatedActDense")]


def heads_reversed(model, patch):
    for a in attentions(model):
        c.before(a.o, patch, lambda x: x.unflatten(-1, (HEADS, -1)).flip(-2).flatten(-2))


FIRST, ATTN, FF = "encoder.block.0.layer.0.layer_norm", "encoder.block.0.layer.0.SelfAttention", "encoder.block.0.layer.1.DenseReluDense"
FAULTS = [
    Fault("norm-eps", "norm eps", FIRST, lambda m, p: c.set_all(m, "UMT5LayerNorm", "variance_epsilon", 1e-5), "eps 1e-5 for T5's 1e-6", FP32),
    Fault("missing-gain", "missing norm gain", "encoder.final_layer_norm", lambda m, p: m.encoder.final_layer_norm.weight.fill_(1),
          "final_layer_norm.weight not loaded"),
    Fault("shared-bias", "wrong layer's weights", "encoder.block.1.layer.0.SelfAttention.relative_attention_bias", shared_bias,
          "T5 has one position bias for all layers, UMT5 one per layer", complete=True),
    Fault("bias-shifted", "position off by one", f"{ATTN}.relative_attention_bias", distance(lambda d: d + 1), "distances counted from one"),
    Fault("attention-scale", "attention scale", f"{ATTN}.o", lambda m, p: [setattr(a, "scaling", HEAD_DIM**-0.5) for a in attentions(m)],
          "T5 does not scale; the port does"),
    Fault("mask-late", "mask off by one", f"{ATTN}.o", mask_late, "the text length counted one too long", complete=True),
    Fault("no-residual", "residual missing", "encoder.block.1.layer.1", c.on("encoder.block.1.layer.1", lambda m, p: c.forward(m, p, no_residual)),
          "the feed-forward's residual left out", BF16),
    Fault("norm-axis", "wrong normalised axis", FIRST, c.forwards("UMT5LayerNorm", c.rms_norm(axis=1, gain_first=False)),
          "the mean square taken over the tokens",
          FP32),
    Fault("gelu-erf", "GELU form", f"{FF}.act", act(F.gelu), "erf GELU for gelu_new", FP32),
    Fault("silu", "activation", f"{FF}.act", act(F.silu), "SwiGLU for the gated GELU", BF16),
    Fault("gates-swapped", "weights swapped", f"{FF}.wi_0", lambda m, p: [c.swap_weights(f.wi_0, f.wi_1) for f in c.modules(m,
          "UMT5DenseGatedActDense")],
          "wi_0 and wi_1 exchanged in the name map", FP32),
    Fault("transposed", "transposed weight", f"{ATTN}.q", lambda m, p: [c.transpose(a.q) for a in attentions(m)],
          "a square weight in the other layout", FP32),
    Fault("heads-reversed", "permuted heads", f"{ATTN}.o", heads_reversed, "heads in descending order", BF16),
    Fault("gain", "gain", f"{FF}.wo", c.on(f"{FF}.wo", lambda m, p: c.forward(m, p, c.scaled_product(3e-3))), "an FP8 weight's scale rounded"),
    Fault("stale", "stale value", "encoder.block.1.layer.0.SelfAttention.k",
          lambda m, p: c.stale(attentions(m)[1].k, attentions(m)[0].k, p), "one scratch buffer for the keys of all layers", BF16),
    Fault("variance-in-bf16", "extra rounding", FIRST, c.forwards("UMT5LayerNorm", c.rms_norm(low=True)),
          "RMSNorm written with bf16 operations", BF16,
          complete=True),
    Fault("norm-in-fp32", "missing rounding", FIRST, c.forwards("UMT5LayerNorm", c.rms_norm(gain_first=True)),
          "the weight applied before the rounding", BF16),
    Fault("gelu-in-fp32", "missing rounding", f"{FF}.act", act(lambda x: F.gelu(x.float(), approximate="tanh").to(x.dtype)),
          "a fused GELU that rounds once for gelu_new's eight times", BF16),
    Fault("truncation", "truncation", "encoder.final_layer_norm", c.on("encoder.final_layer_norm", lambda m, p: c.forward(m, p, truncating_norm)),
          "the normed value truncated to bf16", BF16, program=True, kernel=None),
]

UMT5 = Family(
    "umt5", build, run, SEED, r"encoder\.block\.\d+", FAULTS,
    neutral=[c.forwards("UMT5LayerNorm", c.rms_norm(gain_first=False)), c.forwards("UMT5LayerFF", right_residual), distance(lambda d: d)],
    honest={"fp32": ["products summed feature by feature", "every kernel another"],
            "bf16": ["attention in float32", "attention by the math kernel", "every kernel another"]},
    company={d: ["products split over K", "attention with online softmax", "1/sqrt for rsqrt", "every kernel another", None] for d in DTYPES})
