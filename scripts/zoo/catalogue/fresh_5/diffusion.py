"""Denoisers and an autoencoder of diffusers."""
import torch

from selftest_models.weights import normal

from ...inputs import BATCH, also, floats, prompt_mask, times
from ..denoisers import TWO_TIMES, diffusion

_FRAMES = (3, 6, 8)


def _speed(_seed):
    """Frames a second, motion and noise that was added, of each sample."""
    return torch.tensor([[6.0, 127.0, 0.02], [7.0, 90.0, 0.1]])


def _camera(seed):
    """Cameras that turn and move a little from frame to frame, and the rays through their pixels: 4 x 4 matrices, computed in float32 as on a CPU they must be.
    The map that goes with the rays is asked for, but not used by blocks that take Pluecker coordinates."""
    from diffusers.models.transformers.transformer_sana_wm import _process_camera_conditions_ucpe
    frames, height, width = _FRAMES
    turn = 0.2 * torch.arange(frames)[None] * torch.tensor([[1.0], [-0.7]])
    poses = torch.eye(4).repeat(BATCH, frames, 1, 1)
    poses[..., 0, 0] = poses[..., 2, 2] = turn.cos()
    poses[..., 0, 2] = turn.sin()
    poses[..., 2, 0] = -turn.sin()
    poses[:, 1:, :3, 3] = 0.3 * normal("way", (BATCH, frames - 1, 3), seed)
    lens = torch.tensor([7.0, 6.5, width / 2, height / 2]).expand(BATCH, frames, 4)
    conditions = torch.cat([poses.flatten(2), lens], dim=-1)
    rays, seen = _process_camera_conditions_ucpe(conditions, BATCH, _FRAMES, (1, 1, 1))
    return {"camera_conditions": conditions, "raymats": rays, "cam_pos_embeds": {"absmap": seen.permute(0, 4, 1, 2, 3)}}


def _walk(seed):
    """Latents of a walk: a time for each frame (the first one is given), a prompt, its mask, Pluecker coordinates of two frames of video for each of them."""
    call = floats(hidden_states=(4, *_FRAMES), encoder_hidden_states=(1, 9, 20), chunk_plucker=(12, *_FRAMES))(seed)[0]
    return [{**call, **_camera(seed), "timestep": torch.tensor([[[0, 713, 713]], [[0, 98, 98]]]), "encoder_attention_mask": prompt_mask(9, 3)(seed)}]


def _packed(seed):
    """One sequence: 9 tokens of text, 2 frames of 3 by 4 patches of video, of which the first is given, and 5 of sound; each has its kind, time and place."""
    kinds = torch.tensor([1] * 9 + [0] * 24 + [2] * 5)
    moments = torch.tensor([2] * 21 + [0] * 12 + [1] * 5)
    places = torch.cat([torch.arange(9)[:, None].repeat(1, 3), 9 + torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(4)),
                        9 + torch.arange(5)[:, None] * torch.tensor([[1, 0, 0]])])
    call = floats(hidden_states=(24, 16), audio_hidden_states=(5, 6), encoder_hidden_states=(9, 20))(seed)[0]
    return [{**call, "timestep": torch.tensor([0.713, 0.402, 0.0]), "timestep_indices": moments, "token_tags": kinds, "position_ids": places,
             "video_indices": torch.arange(9, 33), "audio_indices": torch.arange(33, 38), "text_indices": torch.arange(9)}]


ENTRIES = [
    diffusion("unet_spatio_temporal", "UNetSpatioTemporalConditionModel",
              dict(sample_size=14, in_channels=8, out_channels=4, down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
                   up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"), block_out_channels=(32, 64), addition_time_embed_dim=8,
                   projection_class_embeddings_input_dim=24, layers_per_block=1, cross_attention_dim=20, num_attention_heads=(2, 4), num_frames=3),
              also(floats(sample=(3, 8, 14, 10), encoder_hidden_states=(1, 20)), timestep=times(1.4, -0.498), added_time_ids=_speed)),
    diffusion("unet_3d", "UNet3DConditionModel",
              dict(sample_size=14, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
                   block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, cross_attention_dim=20, attention_head_dim=4),
              also(floats(sample=(4, 3, 14, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES)),
    diffusion("motif_video", "MotifVideoTransformer3DModel",
              dict(in_channels=9, out_channels=4, num_attention_heads=4, attention_head_dim=24, num_layers=2, num_single_layers=2, num_decoder_layers=1,
                   mlp_ratio=2.0, text_embed_dim=20, image_embed_dim=28, rope_axes_dim=(8, 8, 8), enable_text_cross_attention_dual=True,
                   enable_text_cross_attention_single=True),
              also(floats(hidden_states=(9, 3, 10, 6), encoder_hidden_states=(9, 20), image_embeds=(5, 28)), timestep=TWO_TIMES,
                   encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("kandinsky6", "Kandinsky6Transformer3DModel",
              dict(in_visual_dim=4, out_visual_dim=4, in_text_dim=20, in_text_dim2=28, time_dim=32, model_dim=96, ff_dim=196, num_text_blocks=1,
                   num_visual_blocks=2, axes_dims=(8, 8, 8), in_audio_dim=6, out_audio_dim=6, model_dim_a=72, ff_dim_a=148, text_token_padding=True,
                   ca_rope=True, cross_gates=True, fix_modulation=True),
              also(floats(hidden_states=(3, 6, 10, 9), encoder_hidden_states=(9, 20), pooled_projections=(28,), audio_hidden_states=(11, 6)),
                   timestep=times(713.0, 98.0), encoder_attention_mask=prompt_mask(9, 3, torch.bool))),
    diffusion("sana_wm", "SanaWMTransformer3DModel",
              dict(in_channels=4, num_layers=2, hidden_size=96, num_attention_heads=4, softmax_every_n=2, linear_head_dim=24, conv_kernel_size=3,
                   chunk_plucker_channels=12, caption_channels=20, mlp_ratio=2.0), _walk),
    diffusion("autoencoder_rae", "AutoencoderRAE",
              dict(encoder_hidden_size=128, encoder_num_hidden_layers=2, decoder_hidden_size=48, decoder_num_hidden_layers=2, decoder_num_attention_heads=4,
                   decoder_intermediate_size=100, patch_size=6, encoder_input_size=70),
              floats(sample=(3, 61, 53))),
    diffusion("minimax_h3", "MiniMaxH3Transformer3DModel",
              dict(num_attention_heads=4, attention_head_dim=24, hidden_size=96, num_layers=2, num_refiner_layers=1, ffn_dim=196, in_channels=4,
                   audio_in_channels=6, text_dim=20, freq_dim=32, time_embed_hidden_dim=48, time_embed_dim=40, rope_freq_dim=3), _packed, batch=False),
]
