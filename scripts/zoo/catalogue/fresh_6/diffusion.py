"""Denoisers and autoencoders of diffusers."""
import torch

from selftest_models.weights import integers, normal

from ...inputs import BATCH, also, floats, prompt_mask, times
from ..denoisers import FLOW_TIMES, TWO_TIMES, diffusion, pairs


def _sizes(seed):
    """The pooled prompt, and original size, corner and target size of each image."""
    sizes = torch.cat([pairs((112, 80), (96, 80))(seed), pairs((0, 0), (5, 3))(seed), pairs((112, 80), (112, 80))(seed)], dim=1)
    return {"text_embeds": floats(pooled=(20,))(seed)[0]["pooled"], "time_ids": sizes}


def _slots(_seed):
    """A prompt of 13 places, of which 3 to 6 are the image that is given, then the image that is made: a place for four tokens."""
    slots = torch.zeros(BATCH, 19, dtype=torch.bool)
    slots[:, 3:7] = slots[:, 13:] = True
    return slots


def _given(seed):
    """One image that is given, of another size."""
    return [normal("given", (BATCH, 4, 8, 6), seed)]


def _packed(seed):
    """One sequence: 9 words; two videos of 3 and 1 frames of 3 by 2 patches, the first frame given; 5 moments of sound; 4 actions, the first one given."""
    kinds = (("words", 9), ("vision", 24), ("sound", 5), ("action", 4))
    places, start = {}, 0
    for name, length in kinds:
        places[name] = torch.arange(start, start + length)
        start += length
    grids = [torch.cartesian_prod(torch.arange(t), torch.arange(3), torch.arange(2)) for t in (3, 1)]
    line = torch.arange(9)[:, None].repeat(1, 3)
    position = torch.cat([line, 9 + grids[0], 13 + grids[1], 9 + line[:5], 9 + line[:4]]).T
    noisy = [torch.tensor([1, 2]), torch.tensor([0])]
    made = places["vision"][6:]
    return [{"input_ids": integers("ids", (9,), 61, seed), "text_indexes": places["words"], "position_ids": position, "und_len": 9, "sequence_length": start,
             "vision_tokens": [normal("video", (1, 4, 3, 6, 4), seed), normal("still", (1, 4, 1, 6, 3), seed)], "vision_token_shapes": [(3, 3, 2), (1, 3, 2)],
             "vision_sequence_indexes": places["vision"], "vision_mse_loss_indexes": made, "vision_noisy_frame_indexes": noisy,
             "vision_timesteps": torch.full((18,), 713.0), "sound_tokens": [normal("sound", (6, 5), seed)], "sound_token_shapes": [(5, 1, 1)],
             "sound_sequence_indexes": places["sound"], "sound_mse_loss_indexes": places["sound"], "sound_timesteps": torch.full((5,), 713.0),
             "sound_noisy_frame_indexes": [torch.arange(5)], "action_tokens": [normal("action", (4, 7), seed)], "action_token_shapes": [(4, 1, 1)],
             "action_sequence_indexes": places["action"], "action_mse_loss_indexes": places["action"][1:], "action_timesteps": torch.full((3,), 713.0),
             "action_noisy_frame_indexes": [torch.arange(1, 4)], "action_domain_ids": [torch.tensor(2)]}]


ENTRIES = [
    diffusion("controlnet_xs", "UNetControlNetXSModel",
              dict(sample_size=14, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
                   block_out_channels=(32, 64), norm_num_groups=8, cross_attention_dim=20, num_attention_heads=(2, 4), addition_embed_type="text_time",
                   addition_time_embed_dim=8, projection_class_embeddings_input_dim=68, ctrl_conditioning_embedding_out_channels=(8, 12),
                   ctrl_conditioning_channel_order="bgr", ctrl_learn_time_embedding=True, time_embedding_mix=0.7, ctrl_block_out_channels=(8, 16),
                   ctrl_num_attention_heads=2, ctrl_max_norm_num_groups=8),
              also(floats(sample=(4, 14, 10), encoder_hidden_states=(9, 20), controlnet_cond=(3, 28, 20)), timestep=TWO_TIMES, conditioning_scale=0.7,
                   added_cond_kwargs=_sizes)),
    diffusion("unet_i2vgen_xl", "I2VGenXLUNet",
              dict(sample_size=14, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
                   block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8, cross_attention_dim=20, attention_head_dim=8),
              also(floats(sample=(4, 3, 14, 10), encoder_hidden_states=(9, 20), image_latents=(4, 3, 14, 10), image_embeddings=(20,)), timestep=TWO_TIMES,
                   fps=times(16, 7))),
    diffusion("qwenimage21", "QwenImage21Transformer2DModel",
              dict(in_channels=16, out_channels=16, num_layers=2, attention_head_dim=24, num_attention_heads=4, context_in_dim=20, axes_dims_rope=(8, 8, 8)),
              also(floats(hidden_states=(16 + 24, 16), encoder_hidden_states=(13, 20)), timestep=FLOW_TIMES, img_shapes=[[(1, 4, 4), (1, 4, 6)]] * BATCH,
                   img_mask=_slots, encoder_hidden_states_mask=prompt_mask(13, 4)), batch=False),
    diffusion("bria_fibo2", "BriaFibo2Transformer2DModel",
              dict(in_channels=4, dim=96, n_layers=3, n_refiner_layers=1, n_heads=4, cap_feat_dim=20, injection_layer_ids=(0, 2), perceiver_num_layers=1,
                   min_num_gist_tokens=4, max_num_gist_tokens=10, gist_step=2, gist_min_text_len=4, gist_max_text_len=13, axes_dims=(8, 8, 8),
                   axes_lens=(32, 16, 16)),
              also(floats(hidden_states=(4, 10, 6), encoder_hidden_states=(3, 13, 20)), timestep=FLOW_TIMES,
                   encoder_attention_mask=prompt_mask(13, 6, torch.bool), context_latents=_given), batch=False),
    diffusion("cosmos3", "Cosmos3OmniTransformer",
              dict(attention_bias=True, head_dim=24, hidden_size=96, intermediate_size=196, latent_channel=4, num_attention_heads=4, num_hidden_layers=2,
                   num_key_value_heads=2, patch_latent_dim=16, rope_axes_dim=(4, 4, 4), action_dim=7, action_gen=True, num_embodiment_domains=3, sound_dim=6,
                   sound_gen=True, vocab_size=61, use_und_k_norm_for_gen=True), _packed, batch=False),
    diffusion("autoencoder_kandinsky6_sr", "Kandinsky6SRVAE",
              dict(latent_channels=8, encoder_block_out_channels=(8, 16, 32, 48), decoder_block_out_channels=(8, 24, 32, 64), layers_per_block=1,
                   temporal_compression_ratio=2),
              floats(sample=(3, 5, 16, 24))),
    diffusion("autoencoder_minimax_h3", "AutoencoderKLMiniMaxH3",
              dict(latent_channels=4, block_out_channels=(16, 24, 32), layers_per_block=1, spatial_downsample_factors=(2, 2, 1),
                   temporal_downsample_factors=(1, 2, 1), norm_num_groups=8, decoder_num_layers=2, decoder_num_attention_heads=4, decoder_attention_head_dim=16,
                   decoder_num_register_tokens=3, decoder_ffn_mult=2, clip_length=5, token_drop=1, latents_mean=(0.0,) * 4, latents_std=(1.0,) * 4),
              floats(sample=(3, 9, 12, 16))),
]
