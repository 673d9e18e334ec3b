"""transformers' GptOssForCausalLM: attention sinks, sliding window in every other layer, YaRN, GQA, mixture of experts with a clamped SwiGLU."""
import torch
from torch.nn import functional as F
from transformers import GptOssConfig, GptOssForCausalLM
from transformers.models.gpt_oss import modeling_gpt_oss as original

from . import changes as c
from .family import BF16, DTYPES, FP32, Family, Fault
from .weights import fill, integers

SEED = 203
WIDTH, HEADS, KV_HEADS, HEAD_DIM, EXPERTS, INNER, TOKENS, VOCABULARY = 24, 4, 2, 8, 4, 16, 12, 32


def build(dtype):
    config = GptOssConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM, num_local_experts=EXPERTS, num_experts_per_tok=2,
        intermediate_size=INNER, num_hidden_layers=2, vocab_size=VOCABULARY, sliding_window=4, swiglu_limit=2.0, use_cache=False,
        attn_implementation="eager", experts_implementation="eager")
    model = fill(GptOssForCausalLM(config), SEED, {r"[qk]_proj\.weight": 1.3, "gate_up_proj$": 1.5})
    table = model.model.rotary_emb.inv_freq.clone()
    model.to(DTYPES[dtype])
    model.model.rotary_emb.inv_freq = table   # as from_pretrained: buffers that are computed stay float32
    return model


def run(model, _dtype):
    model(input_ids=integers("ids", (1, TOKENS), VOCABULARY, SEED))


# --- faults -----------------------------------------------------------------------------------------------------------
def attention(sink=True, tiled=False, wide=False, scale=1.0, blind=False):
    """The eager attention written again. `tiled`: key heads repeated 0 1 0 1 instead of 0 0 1 1; `wide`: scores stay float32; `blind`: no mask."""
    def forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
        n = module.num_key_value_groups
        k, v = (t.repeat(1, n, 1, 1) if tiled else t.repeat_interleave(n, 1) for t in (key, value))
        if wide:
            query, k = query.float(), k.float()
        s = torch.matmul(query, k.transpose(2, 3)) * (scaling * scale)
        s = s if blind else s + attention_mask
        s = torch.cat([s, module.sinks.view(1, -1, 1, 1).expand(*s.shape[:-1], 1)], -1) if sink else s
        s = s - s.max(-1, keepdim=True).values
        p = torch.softmax(s, -1).to(value.dtype)[..., :k.shape[-2]]
        return torch.matmul(p, v).transpose(1, 2).contiguous(), p

    def put_in(model, patch):
        patch(original, "eager_attention_forward", forward)
    return put_in


def rope(pairs=False, sign=1):
    """Halves of a head turned against each other; `pairs`: neighbours instead."""
    def turn(x, cos, sin):
        a, b = (x[..., 0::2], x[..., 1::2]) if pairs else x.chunk(2, -1)
        parts = [a * cos - b * sin * sign, b * cos + a * sin * sign]
        return torch.stack(parts, -1).flatten(-2) if pairs else torch.cat(parts, -1)

    def apply(q, k, cos, sin, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return turn(q, cos, sin), turn(k, cos, sin)
    return lambda model, patch: patch(original, "apply_rotary_pos_emb", apply)


def gate(plus=1, alpha=None, limit=None, halves=False):
    def act(self, x):
        g, up = x.chunk(2, -1) if halves else (x[..., ::2], x[..., 1::2])
        top = limit or self.limit
        g, up = g.clamp(max=top), up.clamp(-top, top)
        return (up + plus) * (g * torch.sigmoid(g * (alpha or self.alpha)))

    def put_in(model, patch):
        for m in c.modules(model, "GptOssExperts"):
            patch(m, "_apply_gate", lambda x, m=m: act(m, x))
    return put_in


def router(scores):
    """scores(logits, top values, indices) in place of the softmax over the chosen."""
    def forward(self, x):
        logits = F.linear(x, self.weight, self.bias)
        top, indices = torch.topk(logits, self.top_k, dim=-1)
        return (logits, *scores(logits, top, indices))
    return c.forwards("GptOssTopKRouter", forward)


def wider_window(model, patch):
    model.config.sliding_window += 1


def plain_frequencies(model, patch):
    """RoPE's own frequencies: YaRN's interpolation of the slow ones left out."""
    model.model.rotary_emb.inv_freq = 150000.0 ** (-torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)


def swap_experts(model, patch):
    for m in c.modules(model, "GptOssExperts"):
        for p in m.parameters():
            p[:2] = p[:2].flip(0).clone()


FIRST, O_PROJ, EXPERT = "model.layers.0.input_layernorm", "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.experts"
FAULTS = [
    Fault("norm-eps", "norm eps", FIRST, lambda m, p: c.set_all(m, "GptOssRMSNorm", "variance_epsilon", 1e-6),
          "Llama's eps 1e-6 for gpt-oss' 1e-5", FP32),
    Fault("sink-missing", "sink missing", O_PROJ, attention(sink=False), "the sink left out of the softmax", complete=True),
    Fault("window", "window off by one", O_PROJ, wider_window, "a window of n counted as the n before the token"),
    Fault("no-mask", "causal mask missing", O_PROJ, attention(blind=True), "attention called without its mask", FP32),
    Fault("key-heads-tiled", "permuted heads", O_PROJ, attention(tiled=True), "key heads repeated 0 1 0 1 instead of 0 0 1 1 (GQA broadcast)", BF16),
    Fault("attention-scale", "attention scale", O_PROJ, attention(scale=HEAD_DIM**0.5), "the scale left out", BF16),
    Fault("rope-pairing", "RoPE pairing", O_PROJ, rope(pairs=True), "interleaved pairs for halves", FP32),
    Fault("rope-sign", "RoPE sign", O_PROJ, rope(sign=-1), "the rotation runs the other way", BF16),
    Fault("yarn-frequencies", "RoPE theta", "model.rotary_emb", plain_frequencies, "YaRN's interpolation of the slow frequencies left out", FP32),
    Fault("yarn-scale", "gain", "model.rotary_emb", lambda m, p: setattr(m.model.rotary_emb, "attention_scaling", 1.0),
          "YaRN's factor on cos and sin left out",
          FP32),
    Fault("one-plus", "one plus forgotten", EXPERT, gate(plus=0), "up * glu for (up + 1) * glu", complete=True),
    Fault("clamp-limit", "clamp limit", EXPERT, gate(limit=7.0), "the published limit 7 for this model's"),
    Fault("swiglu-alpha", "activation", EXPERT, gate(alpha=1.0), "SiLU for x * sigmoid(1.702 x)", FP32),
    Fault("gate-up-halves", "channel order", EXPERT, gate(halves=True), "gate and up read as halves, they are interleaved", BF16),
    Fault("not-renormalised", "expert routing", "model.layers.0.mlp.router[1]",
          router(lambda logits, top, i: (torch.softmax(logits, -1).gather(1, i), i)), "softmax over all experts before the choice", complete=True),
    Fault("scores-reversed", "expert routing", "model.layers.0.mlp.router[1]", router(lambda logits, top, i: (torch.softmax(top, 1).flip(1), i)),
          "weights of the chosen experts in ascending order", FP32),
    Fault("experts-exchanged", "weights swapped", EXPERT, swap_experts, "experts stored in another order than the router counts", BF16),
    Fault("variance-in-bf16", "extra rounding", FIRST, c.forwards("GptOssRMSNorm", c.rms_norm(low=True)),
          "Neuron's gpt-oss notes: RMSNorm's variance in bf16", BF16),
    Fault("llama-norm", "extra rounding", FIRST, c.forwards("GptOssRMSNorm", c.rms_norm(gain_first=False)),
          "Llama's RMSNorm rounds before the weight, gpt-oss' after", BF16),
    Fault("scores-in-fp32", "missing rounding", O_PROJ, attention(wide=True), "scores and softmax in float32 where the model rounds at each step", BF16,
          complete=True),
]

GPT_OSS = Family(
    "gpt-oss", build, run, SEED, r"model\.layers\.\d+", FAULTS, neutral=[attention(), rope(), gate(), c.forwards("GptOssRMSNorm", c.rms_norm()),
                                                                        router(lambda logits, top, i: (torch.softmax(top, 1), i))],
    honest={"fp32": ["products five rows at a time", "softmax with another maximum", "every kernel another"],
            "bf16": []},   # so small and rounded so often, no other kernel changes a bit
    company={"fp32": ["products split over K", "1/sqrt for rsqrt", "softmax with another maximum", "every kernel another", None],
             "bf16": ["products split over K", "1/sqrt for rsqrt", "oneDNN off", None]})
