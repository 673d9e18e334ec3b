"""transformers' GPT2LMHeadModel: learned positions, LayerNorm, fused qkv as Conv1D, gelu_new, causal attention."""
import torch
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from . import changes as c
from .family import BF16, BOTH, DTYPES, FP32, Family, Fault, truncated
from .weights import fill, integers

SEED = 201
WIDTH, HEADS, TOKENS, BATCH, VOCABULARY = 24, 2, 6, 2, 40


def build(dtype):
    config = GPT2Config(n_layer=2, n_embd=WIDTH, n_head=HEADS, n_inner=2 * WIDTH, vocab_size=VOCABULARY, n_positions=16, use_cache=False,
                        bos_token_id=0, eos_token_id=1, attn_implementation="sdpa")
    return fill(GPT2LMHeadModel(config), SEED, {"wte": 0.7, "wpe": 0.5, "c_attn.weight": 1.4, "c_fc.weight": 1.5}).to(DTYPES[dtype])


def run(model, _dtype):
    model(input_ids=integers("ids", (BATCH, TOKENS), VOCABULARY, SEED))


# --- faults -----------------------------------------------------------------------------------------------------------
def swap_qk(model, patch):
    for block in model.transformer.h:
        for p in (block.attn.c_attn.weight, block.attn.c_attn.bias):
            q, k, v = p.chunk(3, dim=-1)
            p.copy_(torch.cat([k, q, v], dim=-1))


def merge_heads_wrong(model, patch):
    """(batch, heads, tokens, dim) read as (batch, tokens, width) without the transpose."""
    for block in model.transformer.h:
        c.before(block.attn.c_proj, patch, lambda x: x.unflatten(-1, (HEADS, -1)).transpose(1, 2).reshape(x.shape))


def late_mask(model, patch):
    """Each token sees one too many."""
    def change(a):
        n = a["query"].shape[-2]
        a.update(is_causal=False, attn_mask=torch.ones(n, n, dtype=torch.bool).tril(1))
    c.sdpa(patch, change)


def nan_row(model, patch):
    """A first token taken for padding is masked for itself too: its row has no key left."""
    def attention(query, key, value, **_kwargs):
        n = query.shape[-2]
        sees = torch.ones(n, n, dtype=torch.bool).tril()
        sees[0] = False
        s = query.float() @ key.float().transpose(-1, -2) * query.shape[-1] ** -0.5
        return (torch.softmax(s.masked_fill(~sees, float("-inf")), -1) @ value.float()).to(query.dtype)
    patch(F, "scaled_dot_product_attention", attention)


def block_forward(residual_of_norm=False, no_residual=False):
    def block(self, x, past_key_values=None, attention_mask=None, *_args, **kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k != "encoder_attention_mask"}
        normed = self.ln_1(x)
        attended, _ = self.attn(normed, past_key_values=past_key_values, attention_mask=attention_mask, **kwargs)
        x = attended + (normed if residual_of_norm else x)
        fed = self.mlp(self.ln_2(x))
        return fed if no_residual else x + fed
    return block


def gelu_wide(x):
    """gelu_new in float32, rounded once: the reference rounds after each of its eight steps."""
    return F.gelu(x.float(), approximate="tanh").to(x.dtype)


def act(function, block=None):
    def put_in(model, patch):
        for b in model.transformer.h if block is None else [model.transformer.h[block]]:
            c.forward(b.mlp.act, patch, lambda self, x: function(x))
    return put_in


def _h1(name):
    return f"transformer.h.1.{name}"


FAULTS = [
    Fault("norm-eps", "norm eps", "transformer.h.0.ln_1", lambda m, p: c.set_all(m, "LayerNorm", "eps", 1e-3),
          "eps 1e-3 (Keras' default of LayerNormalization) for GPT-2's 1e-5", complete=True),
    Fault("norm-eps-1e-6", "norm eps", "transformer.h.0.ln_1", lambda m, p: c.set_all(m, "LayerNorm", "eps", 1e-6),
          "eps 1e-6 (flax' default of nn.LayerNorm) for GPT-2's 1e-5", FP32),
    Fault("unbiased-variance", "unbiased variance", _h1("ln_2"), c.on(_h1("ln_2"), lambda m, p: c.forward(m, p, c.layer_norm(c.unbiased))),
          "var() divides by n-1 in PyTorch unless told otherwise", complete=True),
    Fault("norm-axis", "wrong normalised axis", _h1("ln_1"), c.on(_h1("ln_1"), lambda m, p: c.forward(m, p, c.layer_norm(axis=1))),
          "normalised over the tokens: axis 1 of a channels-first habit"),
    Fault("missing-gain", "missing norm gain", "transformer.ln_f", lambda m, p: m.transformer.ln_f.weight.fill_(1),
          "ln_f.weight not loaded, left at one"),
    Fault("gain-1e-3", "gain", _h1("mlp.c_proj"), c.on(_h1("mlp.c_proj"), lambda m, p: c.forward(m, p, c.scaled_product(1e-3))),
          "a weight's dequantisation scale kept in half precision"),
    Fault("gain-1e-4", "gain", "transformer.h.0.attn.c_attn",
          lambda m, p: [c.forward(b.attn.c_attn, p, c.scaled_product(1e-4)) for b in m.transformer.h],
          "a weight's dequantisation scale printed with four digits", FP32),
    Fault("gain-5e-4", "gain", "transformer.h.0.mlp.c_fc", c.on("transformer.h.0.mlp.c_fc", lambda m, p: c.forward(m, p, c.scaled_product(5e-4))),
          "a weight's dequantisation scale rounded to 11 bits", BF16),
    Fault("missing-bias", "missing bias", _h1("attn.c_proj"), c.on(_h1("attn.c_proj"), lambda m, p: c.zero_bias(m)),
          "c_proj taken for a Linear without bias", complete=True),
    Fault("gelu-erf", "GELU form", "transformer.h.0.mlp.act", act(lambda x: F.gelu(x)), "erf GELU for gelu_new (tanh)", complete=True),
    Fault("relu", "activation", _h1("mlp.act"), act(F.relu, 1), "the activation of one layer left at ReLU", FP32),
    Fault("attention-scale", "attention scale", "transformer.h.0.attn.c_proj",
          lambda m, p: c.sdpa(p, lambda a: a.update(scale=WIDTH**-0.5)), "1/sqrt(width) for 1/sqrt(head width)"),
    Fault("no-causal-mask", "causal mask missing", "transformer.h.0.attn.c_proj",
          lambda m, p: c.sdpa(p, lambda a: a.update(is_causal=False)), "attention called without is_causal", complete=True),
    Fault("mask-off-by-one", "mask off by one", "transformer.h.0.attn.c_proj", late_mask, "tril(1) for tril(0): one token of the future is seen", BF16),
    Fault("nan", "NaN origin", "transformer.h.0.attn.c_proj", nan_row, "a masked first token has no key left: softmax of -inf is NaN"),
    Fault("q-k-swapped", "weights swapped", "transformer.h.0.attn.c_attn", swap_qk, "the fused weight split in the order k, q, v", BF16,
          program=True, kernel=None),
    Fault("heads-merged-wrong", "permuted heads", "transformer.h.0.attn.c_proj", merge_heads_wrong, "heads merged without the transpose back", FP32),
    Fault("transposed", "transposed weight", _h1("attn.c_proj"), c.on(_h1("attn.c_proj"), lambda m, p: c.transpose(m)),
          "Conv1D's (in, out) taken for Linear's (out, in); being square, no shape complains", BF16),
    Fault("wrong-layer", "wrong layer's weights", _h1("mlp.c_fc"), lambda m, p: c.same_weights(m.transformer.h[1].mlp.c_fc, m.transformer.h[0].mlp.c_fc),
          "a slip in the name map: layer 0's c_fc in layer 1", BF16, kernel=None, program=True),
    Fault("position", "position off by one", "transformer.wpe", lambda m, p: c.before(m.transformer.wpe, p, lambda i: i + 1),
          "positions counted from one", FP32),
    Fault("no-residual", "residual missing", "transformer.h.1", c.on("transformer.h.1", lambda m, p: c.forward(m, p, block_forward(no_residual=True))),
          "the second residual of a block left out", BF16, kernel=None, program=True),
    Fault("residual-of-norm", "residual missing", _h1("ln_2"), c.on("transformer.h.1", lambda m, p: c.forward(m, p, block_forward(residual_of_norm=True))),
          "post-norm habit: the residual starts after ln_1", FP32),
    Fault("stale", "stale value", _h1("ln_1"), lambda m, p: c.stale(m.transformer.h[1].ln_1, m.transformer.h[0].ln_2, p),
          "one scratch buffer for all norms, read before it is written"),
    Fault("norm-in-bf16", "extra rounding", "transformer.h.0.ln_1", c.forwards("LayerNorm", c.layer_norm(low=True)),
          "LayerNorm written with bf16 operations", BF16),
    Fault("gelu-in-fp32", "missing rounding", "transformer.h.0.mlp.act", act(gelu_wide), "a fused GELU that rounds once for gelu_new's eight times", BF16,
          complete=True),
    Fault("truncation", "truncation", "transformer.h.0.ln_1",
          c.forwards("LayerNorm", lambda self, x: truncated(
              F.layer_norm(x.float(), self.normalized_shape, self.weight.float(), self.bias.float(), self.eps))),
          "ROCm/aiter#5151: the result truncated instead of rounded", BF16),
]

GPT2 = Family(
    "gpt2", build, run, SEED, r"transformer\.h\.\d+", FAULTS, neutral=[lambda m, p: [c.forward(b, p, block_forward()) for b in m.transformer.h]],
    honest={"fp32": ["products one sample at a time", "products in three parts", "norms by the formula", "every kernel another"],
            "bf16": ["attention with online softmax", "attention in the model's dtype", "attention by the math kernel"]},
    company={d: ["products split over K", "attention in float32", "norms by the formula", "every kernel another", None] for d in BOTH})
