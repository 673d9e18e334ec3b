"""transformers' language models for the embedded dumps: class, configuration, seed; batch 2 and an odd number of tokens."""
import re
import tempfile
import zlib
from dataclasses import dataclass

import torch

BF16 = torch.bfloat16
_FACTORS = ((r"wte\.weight$", 0.7), (r"wpe\.weight$", 0.5), (r"c_attn\.weight$", 1.4), (r"c_fc\.weight$", 1.5),   # activations stay near rms 1
            (r"[qk]_proj\.weight$", 1.3), (r"router\.weight$", 2.0), (r"gate_up_proj$", 2.0),   # gates and ups reach their limit
            (r"experts\.down_proj$", 0.6))


@dataclass(frozen=True)
class LanguageRecipe:
    name: str
    level: str                  # as Recipe
    dtype_path: str             # "transformers": every parameter in the model's dtype
    seed: int
    model: str                  # class of transformers
    config: dict
    batch: int = 2
    tokens: int = 7
    attention: str = "sdpa"     # attn_implementation
    saved: bool = False         # by way of a saved checkpoint: `.to(bfloat16)` would round buffers too (RoPE's frequencies)


# 3 heads of 20: no width is a multiple of a vector's; 101 words and 7 tokens are odd
RECIPES = [
    LanguageRecipe("transformers-gpt2", "op", "transformers", 201, "GPT2LMHeadModel",
                   dict(vocab_size=101, n_positions=24, n_embd=60, n_layer=2, n_head=3)),
    # Widths are multiples of 32, a block of MXFP4's. 4 of 7 tokens in the window; YaRN's ramp crosses the 5 frequencies;
    # three experts a token, so that the order and the width of their sum count; of 200 seeds the one whose routing is decided
    # most clearly. Eager attention: it has no other on a CPU.
    LanguageRecipe("transformers-gpt-oss", "op", "transformers", 390, "GptOssForCausalLM",
                   dict(vocab_size=61, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=6,
                        num_key_value_heads=2, head_dim=10, num_local_experts=5, num_experts_per_tok=3, sliding_window=4,
                        max_position_embeddings=512, swiglu_limit=3.0,
                        rope_parameters=dict(rope_type="yarn", rope_theta=500.0, factor=8.0, beta_fast=4.0, beta_slow=1.0,
                                             truncate=False, original_max_position_embeddings=64)),
                   attention="eager", saved=True),
]


def build(recipe, precision):
    """(model, forward's keyword arguments). The fp32 twin has the values that bf16 left."""
    import transformers

    cls = getattr(transformers, recipe.model)
    config = cls.config_class(**recipe.config, bos_token_id=0, eos_token_id=1, attn_implementation=recipe.attention)
    model = _fill(cls(config), recipe.seed)
    model = _loaded(model, recipe) if recipe.saved else model.to(BF16)
    g = torch.Generator().manual_seed(recipe.seed)
    ids = torch.randint(0, config.vocab_size, (recipe.batch, recipe.tokens), generator=g)
    return (model.float() if precision == "fp32" else model).eval(), dict(input_ids=ids, use_cache=False, return_dict=False)


def _loaded(model, recipe):
    """As users load it: what the class keeps in float32 stays there."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        model = type(model).from_pretrained(folder, dtype=BF16, attn_implementation=recipe.attention)
    model.config._name_or_path = ""   # the folder's name is not part of the model
    return model


@torch.no_grad()
def _fill(model, seed):
    """Random weights with a spread, deterministic in (parameter name, shape, seed); tied ones once."""
    for name, p in model.named_parameters():
        g = torch.Generator().manual_seed(seed * 1_000_003 + zlib.crc32(name.encode()))
        normal = torch.randn(p.shape, generator=g)
        factor = next((f for pattern, f in _FACTORS if re.search(pattern, name)), 1.0)
        if name.endswith(("bias", "sinks")):
            p.copy_((1.0 if name.endswith("sinks") else 0.25) * normal)
        elif p.dim() == 1:   # a norm's gain
            p.copy_(1 + 0.25 * normal.clamp(-3, 3))
        elif "wte" in name or "wpe" in name or "embed_tokens" in name:
            p.copy_(factor * normal)
        else:   # output features of different size; Linear's weights are (out, in), Conv1D's and experts' (…, in, out)
            by_input = p.T if re.search(r"(_proj|router|lm_head)\.weight$", name) else p
            size = torch.exp(0.4 * torch.randn(by_input.shape[-1], generator=g))
            by_input.copy_(factor * (normal.T if by_input is not p else normal) * size / by_input.shape[-2]**0.5)
    return model
