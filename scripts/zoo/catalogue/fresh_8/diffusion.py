"""Denoisers (of frames, of patches from several images, a prior of latents), a U-net's transformer, a controlnet, autoencoders."""
import torch

from selftest_models.weights import normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask
from ..denoisers import FLOW_TIMES, TWO_TIMES, diffusion

_WUERSTCHEN = "diffusers.pipelines.deprecated.wuerstchen.modeling_"


def _of_pipeline(name, model, config, inputs):
    return Entry(name, "diffusion", _WUERSTCHEN + model, config, inputs)


ENTRIES = [
    diffusion("transformer_temporal", "TransformerTemporalModel",
              dict(num_attention_heads=4, attention_head_dim=12, in_channels=32, num_layers=2, norm_num_groups=8, cross_attention_dim=20,
                   double_self_attention=False, positional_embeddings="sinusoidal", num_positional_embeddings=8),
              also(floats(), hidden_states=lambda seed: normal("frames", (BATCH * 5, 32, 4, 3), seed), num_frames=5,
                   encoder_hidden_states=lambda seed: normal("prompt", (BATCH, 9, 20), seed).repeat_interleave(12, dim=0)), batch=False),
    diffusion("transformer_2d_dreamlite", "DreamLiteTransformer2DModel",
              dict(num_attention_heads=4, attention_head_dim=12, in_channels=32, num_layers=2, norm_num_groups=8, cross_attention_dim=20, qk_norm="rms_norm",
                   ff_mult=3, use_linear_projection=True),
              also(floats(hidden_states=(32, 7, 5), encoder_hidden_states=(9, 20)), encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("controlnet_qwenimage", "QwenImageControlNetModel",
              dict(patch_size=2, in_channels=16, out_channels=4, num_layers=2, attention_head_dim=24, num_attention_heads=4, joint_attention_dim=20,
                   axes_dims_rope=(8, 8, 8), extra_condition_channels=4),
              also(floats(hidden_states=(25, 16), controlnet_cond=(25, 20), encoder_hidden_states=(9, 20)), timestep=FLOW_TIMES, conditioning_scale=0.7,
                   encoder_hidden_states_mask=prompt_mask(9, 3), img_shapes=lambda _seed: [[(1, 5, 5)], [(1, 5, 5)]])),
    diffusion("joyimage_edit_plus", "JoyImageEditPlusTransformer3DModel",
              dict(in_channels=4, hidden_size=96, num_attention_heads=4, text_dim=20, mlp_width_ratio=2.0, num_layers=2, rope_dim_list=[8, 8, 8]),
              also(floats(hidden_states=(31, 4, 1, 2, 2), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, encoder_hidden_states_mask=prompt_mask(9, 3),
                   shape_list=lambda _seed: [[(1, 4, 4), (1, 3, 5)], [(1, 4, 4), (1, 2, 5)]]), batch=False),
    _of_pipeline("wuerstchen_prior", "wuerstchen_prior:WuerstchenPrior", dict(c_in=6, c=64, c_cond=20, c_r=32, depth=2, nhead=4),
                 also(floats(x=(6, 7, 5), c=(9, 20)), r=FLOW_TIMES)),
    _of_pipeline("paella_vq", "paella_vq_model:PaellaVQModel", dict(levels=2, bottleneck_blocks=2, embed_dim=48, latent_channels=6, num_vq_embeddings=32),
                 floats(sample=(3, 28, 20))),
    diffusion("autoencoder_hunyuanimage", "AutoencoderKLHunyuanImage",
              dict(in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(32, 32, 64), layers_per_block=1, spatial_compression_ratio=4,
                   sample_size=28), floats(sample=(3, 28, 20))),
]
