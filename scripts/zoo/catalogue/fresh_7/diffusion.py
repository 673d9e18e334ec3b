"""A denoiser of codes, controlnets, autoencoders (one that denoises in two steps) and a reader of prompts."""
import torch

from selftest_models.weights import integers, normal

from ...inputs import BATCH, also, floats, prompt_mask, times
from ..denoisers import TWO_TIMES, diffusion, pairs


def _sizes(seed):
    """The pooled prompt, and original size, corner and target size of each image."""
    sizes = torch.cat([pairs((112, 80), (96, 80))(seed), pairs((0, 0), (5, 3))(seed), pairs((112, 80), (112, 80))(seed)], dim=1)
    return {"text_embeds": floats(pooled=(20,))(seed)[0]["pooled"], "time_ids": sizes}


def _two_conditions(seed):
    return list(floats(depth=(3, 28, 20), edges=(3, 28, 20))(seed)[0].values())


def _first_frame(_seed):
    """The first of three frames is given."""
    mask = torch.zeros(BATCH, 1, 3, 14, 10)
    mask[:, :, 0] = 1
    return mask


def _prompt_of_frames(seed):
    """The prompt of each of three frames, one after the other."""
    return normal("prompt", (BATCH, 9, 20), seed).repeat_interleave(3, dim=0)


def _sizes_of_images(seed):
    """Original size, target size and corner of each image."""
    return torch.cat([pairs((112, 80), (96, 80))(seed), pairs((112, 112), (112, 112))(seed), pairs((0, 0), (5, 3))(seed)], dim=1)


def _rotary_tables(_seed):
    """Cosines and sines of a square of patches, as pipelines hand them over."""
    from diffusers.models.embeddings import get_2d_rotary_pos_embed
    return get_2d_rotary_pos_embed(16, ((0, 0), (7, 7)), (7, 7))


ENTRIES = [
    diffusion("transformer_2d", "Transformer2DModel",
              dict(num_attention_heads=4, attention_head_dim=24, num_layers=3, cross_attention_dim=20, sample_size=6, num_vector_embeds=33,
                   num_embeds_ada_norm=1000, norm_type="ada_norm", attention_bias=True, activation_fn="geglu-approximate"),
              also(floats(encoder_hidden_states=(9, 20)), hidden_states=lambda seed: integers("pixels", (BATCH, 36), 33, seed), timestep=torch.tensor(713),
                   encoder_attention_mask=prompt_mask(9, 3))),
    diffusion("controlnet_sparsectrl", "SparseControlNetModel",
              dict(down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"), block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                   cross_attention_dim=20, attention_head_dim=8, motion_max_seq_length=8, motion_num_attention_heads=4,
                   conditioning_embedding_out_channels=(8, 12), use_simplified_condition_embedding=True),
              also(floats(sample=(4, 3, 14, 10), controlnet_cond=(4, 3, 14, 10)), timestep=TWO_TIMES, encoder_hidden_states=_prompt_of_frames,
                   conditioning_mask=_first_frame, conditioning_scale=0.7), batch=False),
    diffusion("controlnet_union", "ControlNetUnionModel",
              dict(down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                   cross_attention_dim=20, attention_head_dim=(4, 8), addition_embed_type="text_time", addition_time_embed_dim=8,
                   projection_class_embeddings_input_dim=68, conditioning_embedding_out_channels=(8, 12), num_control_type=3, num_trans_channel=32,
                   num_trans_head=4, num_trans_layer=1, num_proj_channel=32),
              also(floats(sample=(4, 14, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, controlnet_cond=_two_conditions, control_type_idx=[0, 2],
                   control_type=lambda _seed: torch.tensor([[1, 0, 1]] * BATCH), conditioning_scale=0.7, added_cond_kwargs=_sizes), batch=False),
    diffusion("consistency_decoder_vae", "ConsistencyDecoderVAE",
              dict(sample_size=28, encoder_block_out_channels=(16, 24, 32), encoder_layers_per_block=1, encoder_norm_num_groups=8,
                   encoder_down_block_types=("DownEncoderBlock2D",) * 3, decoder_block_out_channels=(32, 48, 64), decoder_layers_per_block=1,
                   decoder_down_block_types=("ResnetDownsampleBlock2D",) * 3, decoder_up_block_types=("ResnetUpsampleBlock2D",) * 3,
                   decoder_norm_num_groups=8), floats(sample=(3, 28, 20)), batch=False, tables=True),
    diffusion("autoencoder_kvae_video", "AutoencoderKLKVAEVideo", dict(ch=32, ch_mult=(1, 2, 2), num_res_blocks=1, z_channels=6, temporal_compress_times=4),
              floats(sample=(3, 21, 8, 12))),
    diffusion("controlnet_hunyuan", "HunyuanDiT2DControlNetModel",
              dict(num_attention_heads=4, attention_head_dim=16, hidden_size=64, transformer_num_layers=6, in_channels=4, patch_size=2, sample_size=14,
                   mlp_ratio=2.0, cross_attention_dim=20, cross_attention_dim_t5=32, pooled_projection_dim=24, text_len=7, text_len_t5=9),
              also(floats(hidden_states=(4, 14, 14), controlnet_cond=(4, 14, 14), encoder_hidden_states=(7, 20), encoder_hidden_states_t5=(9, 32)),
                   timestep=times(713.0, 98.0), text_embedding_mask=prompt_mask(7, 2), text_embedding_mask_t5=prompt_mask(9, 3), conditioning_scale=0.7,
                   image_meta_size=_sizes_of_images, style=torch.zeros(BATCH, dtype=torch.long), image_rotary_emb=_rotary_tables)),
    diffusion("condition_embedder_anima", "AnimaTextConditioner",
              dict(source_dim=28, target_dim=40, model_dim=48, num_layers=2, num_attention_heads=4, mlp_ratio=2.0, target_vocab_size=61, use_layer_norm=True,
                   min_sequence_length=24),
              also(floats(source_hidden_states=(13, 28)), target_input_ids=lambda seed: integers("ids", (BATCH, 19), 61, seed),
                   target_attention_mask=prompt_mask(19, 5), source_attention_mask=prompt_mask(13, 4))),
]
