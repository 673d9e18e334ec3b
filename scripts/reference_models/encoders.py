"""transformers' encoders of the Wan pipelines for the embedded dumps: the text encoder UMT5 and the image encoder CLIP ViT.

Both are converted as their users load them (`from_pretrained(torch_dtype=torch.bfloat16)` keeps nothing wider in bf16), batch 2.
"""
import re
import zlib
from dataclasses import dataclass

import torch

BF16 = torch.bfloat16


@dataclass(frozen=True)
class EncoderRecipe:
    name: str
    level: str                  # as Recipe
    dtype_path: str             # "transformers": every parameter in the model's dtype
    seed: int
    model: str                  # class of transformers
    config: dict
    lengths: tuple = ()         # text: tokens of each sample; the longest is not padded
    batch: int = 2


RECIPES = [
    # 3 heads of 12 over a width of 30: heads need not fill it; distances of 12 tokens reach every bucket, exact
    # and logarithmic; the second prompt ends before the window does
    EncoderRecipe("transformers-umt5", "op", "transformers", 211, "UMT5EncoderModel",
                  dict(vocab_size=41, d_model=30, d_kv=12, num_heads=3, d_ff=46, num_layers=2,
                       relative_attention_num_buckets=12, relative_attention_max_distance=20), lengths=(13, 8)),
    # the Wan image encoder's activation (erf) and three layers, so that the last but one is neither first nor last
    EncoderRecipe("transformers-clip-vision", "op", "transformers", 212, "CLIPVisionModel",
                  dict(hidden_size=42, intermediate_size=58, num_hidden_layers=3, num_attention_heads=3, image_size=15, patch_size=5,
                       hidden_act="gelu")),
]


def build(recipe, precision):
    """(model, forward's keyword arguments). The fp32 twin has the values that bf16 left."""
    import transformers

    cls = getattr(transformers, recipe.model)
    config = cls.config_class(**recipe.config, attn_implementation="sdpa")
    model = _fill(cls(config), recipe.seed).to(BF16)
    inputs = (_text if recipe.lengths else _image)(recipe, config)
    return (model.float() if precision == "fp32" else model).eval(), dict(inputs, return_dict=False)


def _text(recipe, config):
    g = torch.Generator().manual_seed(recipe.seed)
    ids = torch.randint(2, config.vocab_size, (len(recipe.lengths), max(recipe.lengths)), generator=g)
    mask = torch.arange(ids.shape[1]) < torch.tensor(recipe.lengths).unsqueeze(1)
    return dict(input_ids=torch.where(mask, ids, config.pad_token_id), attention_mask=mask.long())


def _image(recipe, config):
    """Pixels in float32 in either precision, as the image processor leaves them: the model rounds them itself."""
    g = torch.Generator().manual_seed(recipe.seed)
    pixels = torch.randn(recipe.batch, config.num_channels, config.image_size, config.image_size, generator=g)
    return dict(pixel_values=pixels, output_hidden_states=True)


_SCALES = ((r"SelfAttention\.q\.weight$", 0.3), (r"_proj\.weight$", 1.3), (r"relative_attention_bias", 0.8))   # q: UMT5 does not divide scores by sqrt(d)


@torch.no_grad()
def _fill(model, seed):
    """Random weights with a spread, deterministic in (parameter name, shape, seed); tied ones once."""
    for name, p in model.named_parameters():
        g = torch.Generator().manual_seed(seed * 1_000_003 + zlib.crc32(name.encode()))
        normal = torch.randn(p.shape, generator=g)
        scale = next((s for pattern, s in _SCALES if re.search(pattern, name)), 1.0)
        if name.endswith("bias") and p.dim() == 1:
            p.copy_(0.25 * normal)
        elif "norm" in name and p.dim() == 1:   # a norm's gain
            p.copy_(1 + 0.25 * normal.clamp(-3, 3))
        elif re.search(r"shared|embed_tokens|position_embedding|class_embedding|relative_attention_bias", name):
            p.copy_(scale * normal)
        else:   # (out, in, …); output features of different size
            rows = torch.exp(0.4 * torch.randn(p.shape[0], generator=g)).view(-1, *[1] * (p.dim() - 1))
            p.copy_(scale * normal * rows / p[0].numel()**0.5)
    return model
