"""Denoisers and autoencoders of diffusers."""
import torch

from selftest_models.family import FP32

from ..inputs import also, floats, prompt_mask, times
from .denoisers import TWO_TIMES, diffusion


_HEADS = dict(num_attention_heads=4, attention_head_dim=12, num_layers=2)
_WIDE = dict(num_attention_heads=4, attention_head_dim=26, num_layers=2)


def _classes(_seed):
    return torch.tensor([3, 1])


ENTRIES = [
    diffusion("pixart", "PixArtTransformer2DModel",
              dict(_WIDE, in_channels=4, out_channels=8, cross_attention_dim=104, sample_size=14, patch_size=2, caption_channels=20,
                   use_additional_conditions=False),
              also(floats(hidden_states=(4, 14, 14), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, encoder_attention_mask=prompt_mask(9, 3),
                   added_cond_kwargs=lambda _s: {"resolution": None, "aspect_ratio": None})),
    diffusion("dit", "DiTTransformer2DModel", dict(_WIDE, in_channels=4, out_channels=8, sample_size=14, patch_size=2, num_embeds_ada_norm=7),
              also(floats(hidden_states=(4, 14, 14)), timestep=TWO_TIMES, class_labels=_classes)),
    diffusion("sd3", "SD3Transformer2DModel",
              dict(_WIDE, sample_size=14, patch_size=2, in_channels=4, out_channels=4, joint_attention_dim=20, caption_projection_dim=104,
                   pooled_projection_dim=28, pos_embed_max_size=8, dual_attention_layers=(0,), qk_norm="rms_norm"),
              also(floats(hidden_states=(4, 14, 14), encoder_hidden_states=(9, 20), pooled_projections=(28,)), timestep=TWO_TIMES)),
    diffusion("auraflow", "AuraFlowTransformer2DModel",
              dict(sample_size=10, patch_size=2, in_channels=4, out_channels=4, num_mmdit_layers=1, num_single_dit_layers=1, attention_head_dim=12,
                   num_attention_heads=4, joint_attention_dim=20, caption_projection_dim=48, pos_embed_max_size=36),
              also(floats(hidden_states=(4, 10, 10), encoder_hidden_states=(9, 20)), timestep=times(0.713, 0.098))),
    diffusion("sana", "SanaTransformer2DModel",
              dict(_HEADS, in_channels=4, out_channels=4, num_cross_attention_heads=4, cross_attention_head_dim=12, cross_attention_dim=48,
                   caption_channels=20, sample_size=6, patch_size=1, mlp_ratio=2.0),
              also(floats(hidden_states=(4, 6, 6), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("lumina2", "Lumina2Transformer2DModel",
              dict(sample_size=10, patch_size=2, in_channels=4, hidden_size=96, num_layers=2, num_refiner_layers=1, num_attention_heads=4, num_kv_heads=2,
                   multiple_of=8, axes_dim_rope=(8, 8, 8), axes_lens=(30, 12, 12), cap_feat_dim=20),
              also(floats(hidden_states=(4, 10, 10), encoder_hidden_states=(9, 20)), timestep=times(0.713, 0.098), encoder_attention_mask=prompt_mask(9, 3)),
              batch=False),
    diffusion("mochi", "MochiTransformer3DModel",
              dict(_HEADS, patch_size=2, pooled_projection_dim=28, in_channels=4, text_embed_dim=24, time_embed_dim=24, max_sequence_length=16),
              also(floats(hidden_states=(4, 3, 6, 8), encoder_hidden_states=(9, 24)), timestep=TWO_TIMES,
                   encoder_attention_mask=prompt_mask(9, 3, torch.bool)), batch=False),
    diffusion("allegro", "AllegroTransformer3DModel",
              dict(_HEADS, patch_size=2, in_channels=4, out_channels=4, cross_attention_dim=48, sample_height=6, sample_width=8, sample_frames=3,
                   caption_channels=20),
              also(floats(hidden_states=(4, 3, 6, 8), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("latte", "LatteTransformer3DModel",
              dict(_HEADS, in_channels=4, out_channels=8, cross_attention_dim=48, attention_bias=True, sample_size=6, patch_size=2,
                   activation_fn="gelu-approximate", num_embeds_ada_norm=1000, norm_type="ada_norm_single", norm_elementwise_affine=False,
                   norm_eps=1e-6, caption_channels=20, video_length=3),
              also(floats(hidden_states=(4, 3, 6, 6), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES), batch=False),
    diffusion("prx", "PRXTransformer2DModel",
              dict(in_channels=4, patch_size=2, context_in_dim=20, hidden_size=96, mlp_ratio=2.0, num_heads=4, depth=2, axes_dim=[12, 12]),
              also(floats(hidden_states=(4, 10, 10), encoder_hidden_states=(9, 20)), timestep=times(0.713, 0.098), attention_mask=prompt_mask(9, 3))),
    diffusion("prior", "PriorTransformer", dict(_HEADS, embedding_dim=20, num_embeddings=9, additional_embeddings=4),
              also(floats(hidden_states=(20,), proj_embedding=(20,), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES,
                   attention_mask=prompt_mask(9, 3, torch.bool))),
    diffusion("unet2d", "UNet2DModel",
              dict(sample_size=14, in_channels=3, out_channels=3, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, attention_head_dim=8,
                   down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")),
              also(floats(sample=(3, 14, 14)), timestep=TWO_TIMES)),
    diffusion("unet1d", "UNet1DModel",
              dict(sample_size=32, in_channels=6, out_channels=6, time_embedding_type="positional", use_timestep_embedding=True, flip_sin_to_cos=False,
                   freq_shift=1.0, act_fn="mish", layers_per_block=1, downsample_each_block=False, norm_num_groups=8, block_out_channels=(16, 32),
                   down_block_types=("DownResnetBlock1D", "DownResnetBlock1D"), up_block_types=("UpResnetBlock1D",), mid_block_type="MidResTemporalBlock1D",
                   out_block_type="OutConv1DBlock"),
              also(floats(sample=(6, 32)), timestep=TWO_TIMES)),
    diffusion("autoencoder_kl", "AutoencoderKL",
              dict(block_out_channels=(16, 24), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8,
                   sample_size=18), floats(sample=(3, 18, 14))),
    diffusion("vq_model", "VQModel",
              dict(block_out_channels=(16, 24), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8,
                   num_vq_embeddings=24, latent_channels=4, sample_size=18), floats(sample=(3, 18, 14))),
    diffusion("autoencoder_tiny", "AutoencoderTiny",
              dict(encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16), num_encoder_blocks=(1, 2), num_decoder_blocks=(2, 1)),
              floats(sample=(3, 18, 14)), dtypes=FP32),
    diffusion("autoencoder_oobleck", "AutoencoderOobleck",
              dict(encoder_hidden_size=12, downsampling_ratios=[2, 3], channel_multiples=[1, 2], decoder_channels=12, decoder_input_channels=6,
                   audio_channels=2), floats(sample=(2, 90))),
]
