"""What each embedded reference dump is recorded from: model class, configuration, inputs, seed.

A recipe builds (model, inputs) twice: as its users run it ("bf16") and as the twin with the same weights and inputs that
rounds nowhere ("fp32"). Everything follows from the recipe's seed.
"""
import tempfile
from dataclasses import dataclass, field

import torch

from . import encoders, language, vae
from .wan_original import WanOriginal
from .weights import spread_weights

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
PRECISIONS = {"bf16": BF16, "fp32": F32}


@dataclass(frozen=True)
class Recipe:
    name: str
    level: str                  # what the recorder stores: "op" or "module"
    dtype_path: str             # sky_ac, sky_noac, wan, dsky, dwan; transformers (language.py, encoders.py)
    seed: int
    config: dict
    time: list                  # one per sample, or one per sample and frame
    grid: tuple                 # latent frames, height, width; the three token counts differ
    batch: int = 1
    text_tokens: int = 20
    image_tokens: int = 0
    input_dtype: dict = field(default_factory=dict)   # of the bf16 recording, where it is not bfloat16
    fps: list = None


# 2 heads of 20: RoPE splits the 10 pairs of a head into 4 (frame), 3 (row), 3 (column), unevenly as in the real models
_ORIGINAL = dict(dim=40, ffn_dim=104, num_heads=2, num_layers=2, text_dim=32, text_len=20, rope_len=16)
_ORIGINAL_I2V = dict(_ORIGINAL, model_type="i2v", in_dim=36, image_dim=48, image_tokens=33)
_DIFFUSERS = dict(
    num_attention_heads=2, attention_head_dim=20, ffn_dim=104, num_layers=2, text_dim=32, rope_max_seq_len=16)
_LATENTS_F32 = dict(x=F32, y=F32)   # the samplers keep latents in float32; autocast rounds them at the first layer

RECIPES = [
    Recipe("diffusers-skyreels-v2-i2v", "module", "dsky", 101,
           dict(_DIFFUSERS, in_channels=36, image_dim=48, added_kv_proj_dim=40),
           time=[998], grid=(3, 4, 8), text_tokens=512, image_tokens=33),   # its attention fixes 512 text tokens
    Recipe("diffusers-skyreels-v2-df", "module", "dsky", 102,
           dict(_DIFFUSERS, inject_sample_info=True, num_frame_per_block=2),
           time=[[713, 713, 998, 998]], grid=(4, 4, 6), fps=[1]),   # its per-frame steps carry a rate for one sample only
    Recipe("diffusers-wan-t2v", "op", "dwan", 103, _DIFFUSERS,
           time=[713.25], grid=(3, 4, 8), input_dtype=dict(timestep=F32)),
    Recipe("skyreels-v2-i2v", "module", "sky_ac", 104, _ORIGINAL_I2V,
           time=[998], grid=(3, 4, 8), image_tokens=33, input_dtype=_LATENTS_F32),
    Recipe("skyreels-v2-t2v", "op", "sky_ac", 105, _ORIGINAL, time=[713], grid=(3, 4, 8), input_dtype=_LATENTS_F32),
    Recipe("skyreels-v2-df", "module", "sky_noac", 106,
           dict(_ORIGINAL, inject_sample_info=True, num_frame_per_block=2),
           time=[[713, 713, 998, 998], [640, 640, 871, 871]], grid=(4, 4, 6), batch=2, fps=[1, 0]),
    Recipe("wan-t2v", "module", "wan", 107, _ORIGINAL, time=[998], grid=(3, 4, 8), input_dtype=_LATENTS_F32),
    Recipe("wan-i2v", "module", "wan", 108, _ORIGINAL_I2V,
           time=[713], grid=(3, 4, 8), image_tokens=33, input_dtype=dict(_LATENTS_F32, clip_fea=F16)),
    *language.RECIPES,
    *vae.RECIPES,
    *encoders.RECIPES,
]


def build(recipe, precision):
    """(model, forward's keyword arguments)."""
    if isinstance(recipe, language.LanguageRecipe):
        return language.build(recipe, precision)
    if isinstance(recipe, vae.VaeRecipe):
        return vae.build(recipe, precision)
    if isinstance(recipe, encoders.EncoderRecipe):
        return encoders.build(recipe, precision)
    original = recipe.dtype_path in ("sky_ac", "sky_noac", "wan")
    model, inputs = (_original if original else _diffusers)(recipe, precision)
    if precision == "fp32":
        inputs = {k: v.float() if torch.is_tensor(v) and v.is_floating_point() else v for k, v in inputs.items()}
    return model.eval(), inputs


def _original(recipe, precision):
    model = spread_weights(WanOriginal(recipe.config, recipe.dtype_path), recipe.seed).round_weights_()
    if precision == "fp32":
        model = _twin(model, WanOriginal(recipe.config, recipe.dtype_path, F32))
    inputs = _draw(recipe, recipe.config.get("in_dim", 16), names=("context", "clip_fea"))
    inputs["t"] = torch.tensor(recipe.time)
    if recipe.image_tokens:   # 16 channels of noise, 4 of mask, 16 of the first frame
        inputs["x"], inputs["y"] = (part.contiguous() for part in inputs["x"].split([16, 20], dim=1))
    if recipe.fps:
        inputs["fps"] = torch.tensor(recipe.fps)
    return model, _cast(inputs, recipe)


def _diffusers(recipe, precision):
    import accelerate  # noqa: F401  without it diffusers refuses to keep some modules in float32
    import diffusers

    cls = diffusers.WanTransformer3DModel if recipe.dtype_path == "dwan" else diffusers.SkyReelsV2Transformer3DModel
    with tempfile.TemporaryDirectory() as folder:
        # by way of a saved checkpoint, as users load it: only then do the modules kept in float32 stay there
        spread_weights(cls(**recipe.config), recipe.seed).save_pretrained(folder)
        model = cls.from_pretrained(folder, torch_dtype=BF16)
    model.register_to_config(_name_or_path="")   # the folder's name is not part of the model
    if precision == "fp32":
        model = _twin(model, cls.from_config(model.config))
    inputs = _draw(recipe, recipe.config.get("in_channels", 16),
                   names=("encoder_hidden_states", "encoder_hidden_states_image"))
    inputs["hidden_states"] = inputs.pop("x")
    inputs["timestep"] = torch.tensor(recipe.time)
    if recipe.fps:
        inputs.update(enable_diffusion_forcing=True, fps=torch.tensor(recipe.fps))
    return model, dict(_cast(inputs, recipe), return_dict=False)


def _twin(low, wide):
    """The same values in float32: what `low` holds rounded is widened, what it keeps in float32 stays."""
    wide.load_state_dict({name: value.float() for name, value in low.state_dict().items()})
    return wide


def _draw(recipe, channels, names):
    g = torch.Generator().manual_seed(recipe.seed)
    text = torch.randn(recipe.batch, recipe.text_tokens, recipe.config["text_dim"], generator=g)
    text[:, recipe.text_tokens * 3 // 4:] = 0   # a prompt ends before the text window does; encoders pad with zeros
    inputs = {"x": torch.randn(recipe.batch, channels, *recipe.grid, generator=g), names[0]: text}
    if recipe.image_tokens:
        inputs[names[1]] = torch.randn(recipe.batch, recipe.image_tokens, recipe.config["image_dim"], generator=g)
    return inputs


def _cast(inputs, recipe):
    """Values are rounded here, before the twin widens them: both recordings start from the same numbers."""
    return {k: v.to(recipe.input_dtype.get(k, BF16)) if torch.is_tensor(v) and v.is_floating_point() else v
            for k, v in inputs.items()}
