"""transformers' Qwen3ForCausalLM with its key-value cache, two calls: GQA, a norm per head, rotate_half RoPE, SwiGLU."""
import torch
from torch.nn import functional as F
from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3 import modeling_qwen3 as original

from . import changes as c
from .family import BF16, DTYPES, FP32, Family, Fault, truncated
from .weights import fill, integers

SEED = 204
WIDTH, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCABULARY = 24, 4, 2, 8, 40, 32
CALLS = (7, 4)   # tokens of the prompt, then of a second call on the cache


def build(dtype):
    config = Qwen3Config(hidden_size=WIDTH, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM, intermediate_size=INNER,
                         num_hidden_layers=2, vocab_size=VOCABULARY, max_position_embeddings=64, attn_implementation="sdpa",
                         rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
    model = fill(Qwen3ForCausalLM(config), SEED, {r"[qk]_norm\.weight": 1.3, "embed_tokens": 0.8})
    table = model.model.rotary_emb.inv_freq.clone()
    model.to(DTYPES[dtype])
    model.model.rotary_emb.inv_freq = table   # as from_pretrained: buffers that are computed stay float32
    return model


def run(model, _dtype):
    ids = integers("ids", (1, sum(CALLS)), VOCABULARY, SEED)
    cache = DynamicCache(config=model.config)
    for part in ids.split(CALLS, dim=1):
        model(input_ids=part, past_key_values=cache, use_cache=True)


# --- faults -----------------------------------------------------------------------------------------------------------
def rope(sign=1, pairs=False, wide=False):
    def half(x):
        return torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2) if pairs else torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1)

    def turn(x, cos, sin):
        if pairs:
            cos, sin = (t[..., :t.shape[-1] // 2].repeat_interleave(2, -1) for t in (cos, sin))
        if wide:   # rounded once, at the end
            return (x.float() * cos.float() + half(x).float() * sin.float() * sign).to(x.dtype)
        return x * cos + half(x) * (sin * sign)

    def apply(q, k, cos, sin, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return turn(q, cos, sin), turn(k, cos, sin)
    return lambda model, patch: patch(original, "apply_rotary_pos_emb", apply)


def no_rope(model, patch):
    patch(original, "apply_rotary_pos_emb", lambda q, k, cos, sin, unsqueeze_dim=1: (q, k))


def whole_width_norm(self, x):
    """Over all heads at once; the weight, one head long, repeats."""
    y = x.float()
    y = y * torch.rsqrt((y * y).mean((-2, -1), keepdim=True) + self.variance_epsilon)
    return self.weight * y.to(x.dtype)


def truncating_norm(self, x):
    y = x.float()
    y = (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + self.variance_epsilon)).to(x.dtype)
    return truncated(self.weight.float() * y.float())


def stale_values(model, patch):
    projection = model.model.layers[0].self_attn.v_proj
    last = []

    def old(y):
        last.append(y)
        return last[0][:, :y.shape[1]].clone()
    c.after(projection, patch, old)


def later_positions(by):
    def put_in(model, patch):
        right = model.model.rotary_emb.forward
        patch(model.model.rotary_emb, "forward", lambda x, position_ids: right(x, position_ids + by * (position_ids[:, :1] > 0)))
    return put_in


def cache_order(wrong):
    """wrong(old, new) is what attention reads; the cache itself stays right."""
    def put_in(model, patch):
        def update(self, key, value, layer, *args, **kwargs):
            kept = right(self, key, value, layer, *args, **kwargs)
            old = kept[0].shape[-2] - key.shape[-2]
            return tuple(wrong(t[..., :old, :], t[..., old:, :]) for t in kept) if old else kept
        right = DynamicCache.update
        patch(DynamicCache, "update", update)
    return put_in


def upper_left_mask(model, patch):
    """The second call's mask laid from the first key on, as is_causal does, instead of ending at the last."""
    def change(a):
        q, k = a["query"].shape[-2], a["key"].shape[-2]
        if k > q:
            a.update(attn_mask=torch.ones(q, k, dtype=torch.bool).tril(), is_causal=False)
    c.sdpa(patch, change)


def tiled_heads(model, patch):
    for module in c.modules(model, "Qwen3Attention"):
        c.before(module.o_proj, patch, lambda x: x.unflatten(-1, (KV_HEADS, HEADS // KV_HEADS, -1)).transpose(-3, -2).flatten(-3))


def swap_gate_up(model, patch):
    for m in c.modules(model, "Qwen3MLP"):
        c.swap_weights(m.gate_proj, m.up_proj)


FIRST, O_PROJ, ATTN = "model.layers.0.input_layernorm", "model.layers.0.self_attn.o_proj", "model.layers.0.self_attn"
FAULTS = [
    Fault("norm-eps", "norm eps", FIRST, lambda m, p: c.set_all(m, "Qwen3RMSNorm", "variance_epsilon", 1e-5),
          "Llama 2's eps 1e-5 for Qwen3's 1e-6", FP32),
    Fault("whole-width-norm", "per-head norm", f"{ATTN}.q_norm", lambda m, p: [c.forward(a.q_norm, p, whole_width_norm) for a in c.modules(m,
          "Qwen3Attention")],
          "q normalised over all heads (as OLMo 2) instead of per head", complete=True),
    Fault("norm-axis", "wrong normalised axis", "model.layers.1.post_attention_layernorm",
          c.on("model.layers.1.post_attention_layernorm", lambda m, p: c.forward(m, p, c.rms_norm(axis=1, gain_first=False))),
          "the mean square taken over the tokens", FP32),
    Fault("missing-gain", "missing norm gain", f"{ATTN}.k_norm", lambda m, p: [a.k_norm.weight.fill_(1) for a in c.modules(m, "Qwen3Attention")],
          "k_norm.weight not in the name map", BF16),
    Fault("rope-sign", "RoPE sign", O_PROJ, rope(sign=-1), "rotate_half with the other half negated", FP32),
    Fault("rope-pairing", "RoPE pairing", O_PROJ, rope(pairs=True), "interleaved pairs (GPT-J) for halves (NeoX)", BF16),
    Fault("rope-missing", "RoPE missing", O_PROJ, no_rope, "attention without positions", FP32),
    Fault("rope-theta", "RoPE theta", "model.rotary_emb", lambda m, p: setattr(
        m.model.rotary_emb, "inv_freq", 10000.0 ** (-torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)), "theta 10000 for Qwen3's million", FP32),
    Fault("cached-position", "position off by one", "model.rotary_emb", later_positions(-1), "after the prompt positions start at its last token", call=1,
          complete=True),
    Fault("cache-order", "causal cache", O_PROJ, cache_order(lambda old, new: torch.cat([new, old], -2)),
          "new keys put before the old ones under the causal mask",
          call=1),
    Fault("cache-shifted", "causal cache", O_PROJ, cache_order(lambda old, new: torch.cat([old[..., 1:, :], new[..., :1, :], new], -2)),
          "the cache written one place too far", BF16, call=1),
    Fault("cache-mask", "mask off by one", O_PROJ, upper_left_mask, "is_causal with fewer queries than keys: the mask starts at the first key", call=1),
    Fault("key-heads-tiled", "permuted heads", O_PROJ, tiled_heads, "heads joined group by group in the wrong order", FP32),
    Fault("gelu", "activation", "model.layers.0.mlp.act_fn",
          lambda m, p: [c.forward(b.mlp.act_fn, p, lambda self, x: F.gelu(x)) for b in m.model.layers], "GELU for SiLU"),
    Fault("gate-up-swapped", "weights swapped", "model.layers.0.mlp.gate_proj", swap_gate_up, "w1 and w3 exchanged in the name map", BF16),
    Fault("wrong-layer", "wrong layer's weights", "model.layers.1.self_attn.v_proj",
          lambda m, p: c.same_weights(m.model.layers[1].self_attn.v_proj, m.model.layers[0].self_attn.v_proj), "a slip in the name map", FP32),
    Fault("gain", "gain", "model.layers.1.mlp.down_proj", c.on("model.layers.1.mlp.down_proj", lambda m, p: c.forward(m, p, c.scaled_product(5e-3))),
          "an INT8 weight's scale rounded"),
    Fault("stale", "stale value", f"{ATTN}.v_proj", stale_values, "the second call reads the first call's scratch buffer", FP32, call=1),
    Fault("norm-in-fp32", "missing rounding", FIRST, c.forwards("Qwen3RMSNorm", c.rms_norm(gain_first=True)),
          "the weight applied before the rounding", BF16,
          complete=True),
    Fault("variance-in-bf16", "extra rounding", FIRST, c.forwards("Qwen3RMSNorm", c.rms_norm(low=True)),
          "RMSNorm written with bf16 operations", BF16),
    Fault("rope-in-fp32", "missing rounding", O_PROJ, rope(wide=True), "a fused rotation that rounds once for the reference's three times", BF16),
    Fault("truncation", "truncation", "model.norm", c.on("model.norm", lambda m, p: c.forward(m, p, truncating_norm)),
          "the last norm's result truncated", BF16),
]

QWEN3 = Family(
    "qwen3", build, run, SEED, r"model\.layers\.\d+", FAULTS, neutral=[rope(), c.forwards("Qwen3RMSNorm", c.rms_norm(gain_first=False)),
                                                                     cache_order(lambda old, new: torch.cat([old, new], -2))],
    honest={"fp32": ["1/sqrt for rsqrt", "every kernel another"],
            "bf16": ["attention with online softmax", "attention by the math kernel"]},
    company={d: ["products split over K", "attention with online softmax", "every kernel another", None] for d in DTYPES})
