"""Denoisers, a control net and autoencoders of diffusers."""
import torch

from selftest_models.weights import normal

from ...inputs import BATCH, also, floats, prompt_mask, times
from ..denoisers import FLOW_TIMES, TWO_TIMES, diffusion, pairs


def _for_frames(frames, length, width):
    """A prompt for each frame."""
    return lambda seed: normal("prompt", (BATCH, length, width), seed).repeat_interleave(frames, 0)


def _kinds(_seed):
    """Of each residue: protein, RNA, DNA or atoms."""
    return torch.tensor([0, 0, 1, 1, 2, 2, 3] * 3)[:19].repeat(BATCH, 1)


ENTRIES = [
    diffusion("unet_kandinsky3", "Kandinsky3UNet",
              dict(in_channels=4, time_embedding_dim=32, groups=8, attention_head_dim=8, layers_per_block=2, block_out_channels=(16, 32, 48, 64),
                   cross_attention_dim=24, encoder_hid_dim=20),
              also(floats(sample=(4, 16, 24), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("unet_motion", "UNetMotionModel",
              dict(sample_size=14, down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"), up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"),
                   block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, cross_attention_dim=20, num_attention_heads=2,
                   motion_num_attention_heads=2, motion_max_seq_length=8),
              also(floats(sample=(4, 3, 14, 10)), timestep=TWO_TIMES, encoder_hidden_states=_for_frames(3, 9, 20)), batch=False),
    diffusion("controlnet_sd3", "SD3ControlNetModel",
              dict(sample_size=14, in_channels=4, num_layers=2, attention_head_dim=24, num_attention_heads=4, joint_attention_dim=20, caption_projection_dim=96,
                   pooled_projection_dim=28, out_channels=4, pos_embed_max_size=8, dual_attention_layers=(0,), qk_norm="rms_norm"),
              also(floats(hidden_states=(4, 14, 10), controlnet_cond=(4, 14, 10), encoder_hidden_states=(9, 20), pooled_projections=(28,)),
                   timestep=TWO_TIMES, conditioning_scale=0.7)),
    diffusion("sana_video", "SanaVideoTransformer3DModel",
              dict(in_channels=4, out_channels=4, num_attention_heads=4, attention_head_dim=24, num_layers=2, num_cross_attention_heads=4,
                   cross_attention_head_dim=24, cross_attention_dim=96, caption_channels=20, mlp_ratio=2.0, sample_size=10, rope_max_seq_len=32),
              also(floats(hidden_states=(4, 3, 10, 8), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("cogview4", "CogView4Transformer2DModel",
              dict(in_channels=4, out_channels=4, num_layers=2, attention_head_dim=24, num_attention_heads=4, text_embed_dim=20, time_embed_dim=24, condition_dim=8,
                   pos_embed_max_size=16, sample_size=14, rope_axes_dim=(16, 16)),
              also(floats(hidden_states=(4, 14, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, original_size=pairs((112, 80), (96, 80)),
                   target_size=pairs((112, 80), (112, 80)), crop_coords=pairs((0, 0), (5, 3)))),
    diffusion("autoencoder_mochi", "AutoencoderKLMochi",
              dict(in_channels=15, encoder_block_out_channels=(32, 64), decoder_block_out_channels=(32, 64), latent_channels=4, layers_per_block=(1, 1, 1),
                   temporal_expansions=(2,), spatial_expansions=(2,), add_attention_block=(False, True, True)),
              floats(sample=(3, 5, 12, 16))),
    diffusion("autoencoder_vidtok", "AutoencoderVidTok",
              dict(ch=16, ch_mult=[1, 2], z_channels=4, num_res_blocks=1, spatial_ds=[0], spatial_us=[1], tempo_ds=[0], tempo_us=[1]),
              also(floats(sample=(3, 5, 18, 14)), sample_posterior=False)),
    diffusion("rfd4_proteina", "RFD4ProteinaTransformer",
              dict(nlayers=2, token_dim=96, nheads=4, dim_cond=32, pair_repr_dim=24, latent_dim=6, token_type_emb_dim=8, cath_emb_dim=8, t_emb_dim=16,
                   seq_sep_dim=8, xt_pair_dist_dim=9, feats_seq=("xt_bb_ca", "xt_local_latents", "token_type"), feats_cond_seq=("time_emb_bb_ca", "time_emb_local_latents"),
                   feats_pair_repr=("xt_bb_ca_pair_dists",), tri_mult_c=20, num_sequence_classes=11),
              also(floats(bb_ca=(19, 3), local_latents=(19, 6)), bb_ca_time=FLOW_TIMES, local_latents_time=times(0.5, 0.1),
                   padding_mask=prompt_mask(19, 4, torch.bool), token_type=_kinds, recycle_depth=2,
                   conditioning=lambda _s: {"is_in_context_conditioning": torch.zeros(BATCH, 19, dtype=torch.bool),
                                            "supports_local_latent": _kinds(0) < 2}), batch=False),
]
