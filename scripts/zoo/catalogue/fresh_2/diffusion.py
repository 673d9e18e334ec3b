"""Denoisers and autoencoders of diffusers."""
import torch

from selftest_models.weights import integers, normal

from ...inputs import BATCH, also, floats, times
from ..denoisers import TWO_TIMES, diffusion

_LEVELS = dict(down_block_types=("DownEncoderBlock2D",) * 2, block_out_channels=(32, 64))


def _lists(seed):
    """An image and a prompt for each sample, all of different size."""
    return [{"x": [normal(f"x {i}", (4, 1, *size), seed) for i, size in enumerate(((8, 10), (6, 8)))],
             "cap_feats": [normal(f"prompt {i}", (length, 20), seed) for i, length in enumerate((9, 13))], "t": torch.tensor([0.713, 0.098])}]


def _interleaved(seed):
    """A prompt of 17 tokens, in which an input image stands at 5 to 13 (of the first sample) or 3 to 9; a time; 25 patches, which see all, while a prompt
    sees what is before it and its images as a whole. The second prompt is padded on the left by 2."""
    length, patches = 17, 25
    mask = torch.ones(length + 1 + patches, length + 1 + patches).tril()[None].repeat(BATCH, 1, 1)
    mask[:, length + 1:] = 1
    mask[0, 5:14, 5:14] = 1
    mask[1, 3:9, 3:9] = 1
    mask[1, :, :2] = 0
    mask[1, :2, :2] = torch.eye(2)
    places = torch.arange(length + 1 + patches)[None] - torch.tensor([[0], [2]])
    return [{"hidden_states": normal("x", (BATCH, 4, 10, 10), seed), "timestep": torch.tensor([0.713, 0.098]),
             "input_ids": 3 + integers("ids", (BATCH, length), 58, seed), "input_image_sizes": {0: [[5, 14]], 1: [[3, 9]]},
             "input_img_latents": [normal("image 0", (1, 4, 6, 6), seed), normal("image 1", (1, 4, 6, 4), seed)],
             "attention_mask": mask.long(), "position_ids": places.clamp(min=0)}]


ENTRIES = [
    diffusion("easyanimate", "EasyAnimateTransformer3DModel",
              dict(num_attention_heads=4, attention_head_dim=32, in_channels=4, out_channels=4, patch_size=2, num_layers=2, mmdit_layers=1, time_embed_dim=24,
                   text_embed_dim=20, add_norm_text_encoder=True),
              also(floats(hidden_states=(4, 3, 8, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES)),
    diffusion("kandinsky5", "Kandinsky5Transformer3DModel",
              dict(in_visual_dim=4, in_text_dim=20, in_text_dim2=28, time_dim=32, out_visual_dim=4, model_dim=96, ff_dim=196, num_text_blocks=1,
                   num_visual_blocks=2, axes_dims=(8, 8, 8)),
              also(floats(hidden_states=(3, 6, 8, 4), encoder_hidden_states=(9, 20), pooled_projections=(28,)), timestep=times(713.0, 98.0),
                   visual_rope_pos=lambda _s: [torch.arange(3), torch.arange(3), torch.arange(4)], text_rope_pos=lambda _s: torch.arange(9))),
    diffusion("omnigen", "OmniGenTransformer2DModel",
              dict(in_channels=4, hidden_size=96, num_attention_heads=4, num_key_value_heads=4, intermediate_size=196, num_layers=2, pad_token_id=0,
                   vocab_size=61, max_position_embeddings=64, original_max_position_embeddings=64, pos_embed_max_size=8, time_step_dim=24,
                   rope_scaling={"short_factor": [1.0 + 0.02 * i for i in range(12)], "long_factor": [1.0 + 0.1 * i for i in range(12)]}),
              _interleaved, batch=False),
    diffusion("z_image", "ZImageTransformer2DModel",
              dict(in_channels=4, dim=96, n_layers=2, n_refiner_layers=1, n_heads=4, n_kv_heads=4, cap_feat_dim=20, axes_dims=[8, 8, 8],
                   axes_lens=[80, 16, 16]), _lists, batch=False),
    diffusion("joyimage", "JoyImageEditTransformer3DModel",
              dict(in_channels=4, hidden_size=96, num_attention_heads=4, text_dim=20, mlp_width_ratio=2.0, num_layers=2, rope_dim_list=[8, 8, 8]),
              also(floats(hidden_states=(4, 3, 6, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES)),
    diffusion("autoencoder_temporal", "AutoencoderKLTemporalDecoder", dict(_LEVELS, sample_size=18),
              also(floats(sample=(3, 18, 14)), num_frames=2), batch=False),
    diffusion("autoencoder_kvae", "AutoencoderKLKVAE", dict(channels=32, num_enc_blocks=1, num_dec_blocks=1, z_channels=4, ch_mult=(1, 2)),
              floats(sample=(3, 18, 14))),
]
