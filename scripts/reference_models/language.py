"""transformers' language models for the embedded dumps: class, configuration, seed; batch 2 and an odd number of tokens."""
import re
import zlib
from dataclasses import dataclass

import torch

BF16 = torch.bfloat16
_FACTORS = ((r"wte\.weight$", 0.7), (r"wpe\.weight$", 0.5), (r"c_attn\.weight$", 1.4), (r"c_fc\.weight$", 1.5))   # activations stay near rms 1


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


# 3 heads of 20: no width is a multiple of a vector's; 101 words and 7 tokens are odd
RECIPES = [
    LanguageRecipe("transformers-gpt2", "op", "transformers", 201, "GPT2LMHeadModel",
                   dict(vocab_size=101, n_positions=24, n_embd=60, n_layer=2, n_head=3)),
]


def build(recipe, precision):
    """(model, forward's keyword arguments). The fp32 twin has the values that bf16 left."""
    import transformers

    cls = getattr(transformers, recipe.model)
    config = cls.config_class(**recipe.config, bos_token_id=0, eos_token_id=1, attn_implementation="sdpa")
    model = _fill(cls(config), recipe.seed).to(BF16)
    g = torch.Generator().manual_seed(recipe.seed)
    ids = torch.randint(0, config.vocab_size, (recipe.batch, recipe.tokens), generator=g)
    return (model.float() if precision == "fp32" else model).eval(), dict(input_ids=ids, use_cache=False, return_dict=False)


@torch.no_grad()
def _fill(model, seed):
    """Random weights with a spread, deterministic in (parameter name, shape, seed); tied ones once."""
    for name, p in model.named_parameters():
        g = torch.Generator().manual_seed(seed * 1_000_003 + zlib.crc32(name.encode()))
        normal = torch.randn(p.shape, generator=g)
        factor = next((f for pattern, f in _FACTORS if re.search(pattern, name)), 1.0)
        if name.endswith("bias"):
            p.copy_(0.25 * normal)
        elif p.dim() == 1:   # a norm's gain
            p.copy_(1 + 0.25 * normal.clamp(-3, 3))
        elif "wte" in name or "wpe" in name:
            p.copy_(factor * normal)
        else:   # Conv1D: (in, out); output features of different size
            p.copy_(factor * normal * torch.exp(0.4 * torch.randn(p.shape[1], generator=g)) / p.shape[0]**0.5)
    return model
