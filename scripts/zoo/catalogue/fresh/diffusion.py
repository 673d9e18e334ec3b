"""Denoisers and autoencoders of diffusers."""
from ...inputs import also, floats, prompt_mask, times
from ..denoisers import TWO_TIMES, diffusion


def _rotary_tables(width, side):
    """Cosines and sines of a square of patches, as pipelines hand them over."""
    def make(_seed):
        from diffusers.models.embeddings import get_2d_rotary_pos_embed
        return get_2d_rotary_pos_embed(width, ((0, 0), (side, side)), (side, side))
    return make


def _with_mask(make, mask, name):
    """The encodings and their mask as one argument, a list of pairs."""
    return lambda seed: [{**{k: v for k, v in call.items() if k != name}, name: [(call[name], mask(seed).to(call[name].dtype))]} for call in make(seed)]


_LEVELS = dict(latent_channels=4, attention_head_dim=8, upsample_block_type="interpolate", downsample_block_type="Conv",
               decoder_norm_types=("rms_norm", "rms_norm"), decoder_act_fns=("silu", "silu"),
               **{f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in (
                   ("block_types", ("ResBlock", "EfficientViTBlock")), ("block_out_channels", (16, 32)), ("layers_per_block", (1, 1)),
                   ("qkv_multiscales", ((), (5,))))})

ENTRIES = [
    diffusion("hunyuan_dit", "HunyuanDiT2DModel",
              dict(num_attention_heads=4, attention_head_dim=16, hidden_size=64, num_layers=4, in_channels=4, patch_size=2, sample_size=14, mlp_ratio=2.0,
                   cross_attention_dim=20, cross_attention_dim_t5=32, pooled_projection_dim=24, text_len=7, text_len_t5=9,
                   use_style_cond_and_image_meta_size=False),
              also(floats(hidden_states=(4, 14, 14), encoder_hidden_states=(7, 20), encoder_hidden_states_t5=(9, 32)), timestep=times(713.0, 98.0),
                   text_embedding_mask=prompt_mask(7, 2), text_embedding_mask_t5=prompt_mask(9, 3), image_rotary_emb=_rotary_tables(16, 7))),
    diffusion("qwenimage", "QwenImageTransformer2DModel",
              dict(patch_size=2, in_channels=16, out_channels=4, num_layers=2, attention_head_dim=24, num_attention_heads=4, joint_attention_dim=20,
                   axes_dims_rope=(8, 8, 8)),
              also(floats(hidden_states=(25, 16), encoder_hidden_states=(9, 20)), timestep=times(0.713, 0.098),
                   encoder_hidden_states_mask=prompt_mask(9, 3), img_shapes=lambda _s: [[(1, 5, 5)], [(1, 5, 5)]])),
    diffusion("cosmos", "CosmosTransformer3DModel",
              dict(in_channels=4, out_channels=4, num_attention_heads=4, attention_head_dim=16, num_layers=2, mlp_ratio=2.0, text_embed_dim=20,
                   adaln_lora_dim=8, max_size=(4, 16, 16), concat_padding_mask=False),
              also(floats(hidden_states=(4, 2, 8, 10), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES)),
    diffusion("t5_film", "T5FilmDecoder",
              dict(input_dims=20, targets_length=17, d_model=48, num_layers=2, num_heads=4, d_kv=12, d_ff=100),
              _with_mask(also(floats(encodings_and_masks=(11, 48), decoder_input_tokens=(17, 20)), decoder_noise_time=times(0.713, 0.098)),
                         prompt_mask(11, 4), "encodings_and_masks")),
    diffusion("stable_cascade", "StableCascadeUNet",
              dict(in_channels=4, out_channels=4, timestep_ratio_embedding_dim=16, conditioning_dim=32, block_out_channels=(32, 48),
                   num_attention_heads=(4, 4), down_num_layers_per_block=(1, 1), up_num_layers_per_block=(1, 1), clip_text_in_channels=20,
                   clip_text_pooled_in_channels=20, clip_image_in_channels=24, clip_seq=2),
              also(floats(sample=(4, 10, 10), clip_text=(9, 20), clip_text_pooled=(1, 20), clip_img=(1, 24)), timestep_ratio=times(0.713, 0.098))),
    diffusion("autoencoder_dc", "AutoencoderDC", _LEVELS, floats(sample=(3, 18, 14))),
    diffusion("autoencoder_asym", "AsymmetricAutoencoderKL",
              dict(down_block_types=("DownEncoderBlock2D",) * 2, down_block_out_channels=(16, 24), up_block_types=("UpDecoderBlock2D",) * 2,
                   up_block_out_channels=(16, 24), layers_per_up_block=1, norm_num_groups=8, sample_size=18),
              also(floats(sample=(3, 18, 14)), mask=lambda seed: (floats(mask=(1, 18, 14))(seed)[0]["mask"] > 0).float())),
]
