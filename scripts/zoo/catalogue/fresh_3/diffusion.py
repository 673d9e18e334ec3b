"""Denoisers and autoencoders of diffusers."""
import torch

from selftest_models.weights import normal

from ...inputs import BATCH, also, floats, prompt_mask, times
from ..denoisers import FLOW_TIMES, TWO_TIMES, diffusion, pairs


def _grid(text, height, width):
    """Places (time, row, column): those of the text along the first axis (or 0), those of the image on a grid."""
    def make(_seed):
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        image = torch.stack([torch.zeros_like(rows), rows, columns], dim=-1).flatten(0, 1)
        return torch.cat([torch.zeros(text, 3, dtype=torch.long), image])
    return make


def _layered(layers, length, width):
    """Hidden states of some layers of a text encoder, layers first."""
    return lambda seed: normal("layers", (layers, BATCH, length, width), seed)


def _packed(seed):
    """Nine tokens of text, then 25 of an image; in the second sample the last two tokens of the text are a segment of their own (padding)."""
    roles = torch.tensor([3] * 9 + [2] * 25).repeat(BATCH, 1)
    segments = torch.zeros(BATCH, 34, dtype=torch.long)
    roles[1, 7:9], segments[1, 7:9] = -1, 1
    call = floats(hidden_states=(34, 8), encoder_hidden_states=(34, 20))(seed)[0]
    return [{**call, "timestep": FLOW_TIMES(seed), "position_ids": _grid(9, 5, 5)(seed).repeat(BATCH, 1, 1), "segment_ids": segments, "indicator": roles}]


def _lumina_angles(width, height, columns):
    """Angles of a grid of patches, as the pipeline hands them over."""
    def make(_seed):
        from diffusers.models.embeddings import get_2d_rotary_pos_embed_lumina
        return get_2d_rotary_pos_embed_lumina(width, height, columns)
    return make


ENTRIES = [
    diffusion("cogview3plus", "CogView3PlusTransformer2DModel",
              dict(in_channels=4, num_layers=2, attention_head_dim=24, num_attention_heads=4, out_channels=4, text_embed_dim=20, time_embed_dim=24,
                   condition_dim=8, pos_embed_max_size=8, sample_size=14),
              also(floats(hidden_states=(4, 14, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, original_size=pairs((112, 80), (96, 80)),
                   target_size=pairs((112, 80), (112, 80)), crop_coords=pairs((0, 0), (5, 3)))),
    diffusion("hidream", "HiDreamImageTransformer2DModel",
              dict(patch_size=2, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=24, num_attention_heads=4, caption_channels=[20, 28],
                   text_emb_dim=32, num_routed_experts=4, num_activated_experts=2, axes_dims_rope=(8, 8, 8), max_resolution=(12, 12), llama_layers=[0, 2]),
              also(floats(hidden_states=(4, 10, 8), encoder_hidden_states_t5=(9, 20), pooled_embeds=(32,)), timesteps=TWO_TIMES,
                   encoder_hidden_states_llama3=_layered(3, 7, 28)), batch=False),
    diffusion("krea2", "Krea2Transformer2DModel",
              dict(in_channels=16, num_layers=2, attention_head_dim=24, num_attention_heads=4, num_key_value_heads=2, intermediate_size=196,
                   timestep_embed_dim=16, text_hidden_dim=48, num_text_layers=3, text_num_attention_heads=4, text_num_key_value_heads=4,
                   text_intermediate_size=100, num_layerwise_text_blocks=1, num_refiner_text_blocks=1, axes_dims_rope=(8, 8, 8)),
              also(floats(hidden_states=(25, 16), encoder_hidden_states=(9, 3, 48)), timestep=FLOW_TIMES, position_ids=_grid(9, 5, 5),
                   encoder_attention_mask=prompt_mask(9, 3, torch.bool)), batch=False),
    diffusion("ideogram4", "Ideogram4Transformer2DModel",
              dict(in_channels=8, num_layers=2, attention_head_dim=24, num_attention_heads=4, intermediate_size=196, adaln_dim=20, llm_features_dim=20,
                   rope_theta=10000, mrope_section=(4, 4, 4)), _packed),
    diffusion("nucleusmoe", "NucleusMoEImageTransformer2DModel",
              dict(in_channels=16, out_channels=4, num_layers=2, attention_head_dim=24, num_attention_heads=4, num_key_value_heads=2, joint_attention_dim=20,
                   axes_dims_rope=(8, 8, 8), mlp_ratio=2.0, dense_moe_strategy="leave_first_block_dense", num_experts=4, moe_intermediate_dim=36,
                   capacity_factors=2.0),
              also(floats(hidden_states=(25, 16), encoder_hidden_states=(9, 20)), timestep=FLOW_TIMES,
                   encoder_hidden_states_mask=prompt_mask(9, 3, torch.bool), img_shapes=lambda _s: [[(1, 5, 5)], [(1, 5, 5)]]), batch=False),
    diffusion("lumina_next", "LuminaNextDiT2DModel",
              dict(sample_size=10, in_channels=4, hidden_size=96, num_layers=2, num_attention_heads=4, num_kv_heads=2, multiple_of=8, cross_attention_dim=20),
              also(floats(hidden_states=(4, 10, 14), encoder_hidden_states=(9, 20)), timestep=FLOW_TIMES, encoder_mask=prompt_mask(9, 3),
                   image_rotary_emb=_lumina_angles(24, 16, 16), cross_attention_kwargs=lambda _s: {})),
    diffusion("ernie_image", "ErnieImageTransformer2DModel",
              dict(hidden_size=96, num_attention_heads=4, num_layers=2, ffn_hidden_size=196, in_channels=8, out_channels=8, text_in_dim=20,
                   rope_axes_dim=(8, 8, 8)),
              also(floats(hidden_states=(8, 5, 7), text_bth=(9, 20)), timestep=TWO_TIMES, text_lens=times(9, 6))),
]
