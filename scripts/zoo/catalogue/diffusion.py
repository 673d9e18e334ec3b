"""Denoisers and autoencoders of diffusers."""
from ..entry import Entry
from ..inputs import also, floats, prompt_mask, times


def _diffusion(name, model, config, inputs, **more):
    return Entry(name, "diffusion", f"diffusers:{model}", config, inputs, **more)


ENTRIES = [
    _diffusion("pixart", "PixArtTransformer2DModel",
               dict(num_attention_heads=4, attention_head_dim=12, in_channels=4, out_channels=8, num_layers=2, cross_attention_dim=48, sample_size=10,
                    patch_size=2, caption_channels=20, use_additional_conditions=False),
               also(floats(hidden_states=(4, 10, 10), encoder_hidden_states=(9, 20)), timestep=times(713, 98), encoder_attention_mask=prompt_mask(9, 3),
                    added_cond_kwargs=lambda _s: {"resolution": None, "aspect_ratio": None})),
    _diffusion("unet2d", "UNet2DModel",
               dict(sample_size=14, in_channels=3, out_channels=3, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, attention_head_dim=8,
                    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")),
               also(floats(sample=(3, 14, 14)), timestep=times(713, 98))),
]
