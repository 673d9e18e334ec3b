"""diffusers' AutoencoderKLWan for the embedded dumps: decode and encode as the Wan pipelines call them."""
import types
from dataclasses import dataclass

import torch

from .weights import spread_weights

BF16 = torch.bfloat16


@dataclass(frozen=True)
class VaeRecipe:
    name: str
    level: str                  # as Recipe
    dtype_path: str             # "diffusers": every parameter in the model's dtype
    seed: int
    config: dict
    way: str                    # "decode" or "encode"
    shape: tuple                # of the input


# As Wan2.1's: three halvings of the picture, the last two also of time.
_CONFIG = dict(z_dim=3, dim_mult=[1, 2, 2, 2], num_res_blocks=1, temperal_downsample=[False, True, True],
               latents_mean=[-0.31, 0.24, 0.52], latents_std=[1.7, 0.8, 2.3])

# Three latent frames: the first alone, the second after it (diffusers' "Rep"), the third with a cache in every layer.
RECIPES = [
    VaeRecipe("diffusers-wan-vae-decode", "module", "diffusers", 301, dict(_CONFIG, base_dim=2), "decode", (2, 3, 3, 2, 1)),
    VaeRecipe("diffusers-wan-vae-encode", "module", "diffusers", 302, dict(_CONFIG, base_dim=3), "encode", (2, 3, 9, 17, 11)),
]


def build(recipe, precision):
    """(model, forward's keyword arguments). The fp32 twin has the values that bf16 left."""
    import diffusers

    model = spread_weights(diffusers.AutoencoderKLWan(**recipe.config), recipe.seed)
    with torch.no_grad():
        model.decoder.conv_out.weight.mul_(0.5)   # most of the picture inside [-1, 1], where it is cut off
    model = model.to(BF16)
    model = model.float() if precision == "fp32" else model
    model.forward = types.MethodType({"decode": _decode, "encode": _encode}[recipe.way], model)
    values = torch.randn(recipe.shape, generator=torch.Generator().manual_seed(recipe.seed)).to(BF16)
    values = values.clamp(-1, 1) if recipe.way == "encode" else values   # a video lies in [-1, 1]
    name = {"decode": "latents", "encode": "video"}[recipe.way]
    return model.eval(), {name: values.float() if precision == "fp32" else values}


def _mean_and_reciprocal_std(vae, like):
    shape = (1, vae.config.z_dim, 1, 1, 1)
    mean = torch.tensor(vae.config.latents_mean).view(shape).to(like.device, like.dtype)
    return mean, 1.0 / torch.tensor(vae.config.latents_std).view(shape).to(like.device, like.dtype)


def _decode(vae, latents):
    """What WanPipeline.__call__ does with the transformer's last latents (pipeline_wan.py)."""
    mean, reciprocal_std = _mean_and_reciprocal_std(vae, latents)
    return vae.decode(latents / reciprocal_std + mean, return_dict=False)[0]


def _encode(vae, video):
    """What WanImageToVideoPipeline.prepare_latents does with the first frames (pipeline_wan_i2v.py)."""
    mean, reciprocal_std = _mean_and_reciprocal_std(vae, video)
    return (vae.encode(video).latent_dist.mode() - mean) * reciprocal_std
