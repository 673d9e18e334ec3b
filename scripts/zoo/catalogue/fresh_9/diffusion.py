"""A denoiser of a quantizer's latents, two transformers in one, a controlnet, a field of light, readers of prompts (beside an image, around a subject)."""
from selftest_models.weights import normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, tokens
from ..denoisers import FLOW_TIMES, TWO_TIMES, diffusion


def _part(name, model, config, inputs, **more):
    return Entry(name, "diffusion", "diffusers." + model, config, inputs, **more)


def _unit(name, count):
    """So many directions for each sample."""
    def make(seed):
        vectors = normal(name, (BATCH, count, 3), seed)
        return vectors / vectors.norm(dim=-1, keepdim=True)
    return make


ENTRIES = [
    _part("unclip_text_proj", "pipelines.deprecated.unclip.text_proj:UnCLIPTextProjModel",
          dict(clip_extra_context_tokens=4, clip_embeddings_dim=100, time_embed_dim=152, cross_attention_dim=48),
          also(floats(image_embeddings=(100,)), do_classifier_free_guidance=True,
               prompt_embeds=lambda seed: normal("prompt", (2 * BATCH, 100), seed),
               text_encoder_hidden_states=lambda seed: normal("words", (2 * BATCH, 13, 100), seed)), batch=False),
    _part("wuerstchen_decoder", "pipelines.deprecated.wuerstchen.modeling_wuerstchen_diffnext:WuerstchenDiffNeXt",
          dict(c_in=4, c_out=4, c_r=32, patch_size=2, c_cond=40, c_hidden=[32, 48], nhead=[-1, 4], blocks=[1, 2], level_config=["CT", "CTA"],
               inject_effnet=[False, True], effnet_embd=6, clip_embd=20),
          also(floats(x=(4, 28, 20), effnet=(6, 5, 4), clip=(9, 20)), r=FLOW_TIMES)),
    diffusion("controlnet", "ControlNetModel",
              dict(down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                   cross_attention_dim=20, attention_head_dim=(4, 8), conditioning_embedding_out_channels=(8, 12)),
              also(floats(sample=(4, 14, 10), controlnet_cond=(3, 28, 20), encoder_hidden_states=(9, 20)), timestep=TWO_TIMES, conditioning_scale=0.7)),
    _part("shap_e_field", "pipelines.shap_e.renderer:MLPNeRSTFModel", dict(d_hidden=152, n_hidden_layers=5, insert_direction_at=3),
          also(floats(position=(37, 3), ts=(37, 1)), direction=_unit("direction", 37))),
    _part("blip_diffusion_text", "pipelines.deprecated.blip_diffusion.modeling_ctx_clip:CLIPTextConfig:ContextCLIPTextModel",
          dict(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, max_position_embeddings=64),
          also(tokens(19, 61), ctx_embeddings=lambda seed: normal("subject", (BATCH, 5, 48), seed), ctx_begin_pos=[2, 4]), batch=False),
    _part("dual_transformer_2d", "models.transformers.dual_transformer_2d:DualTransformer2DModel",
          dict(num_attention_heads=4, attention_head_dim=12, in_channels=32, num_layers=2, norm_num_groups=8, cross_attention_dim=20),
          floats(hidden_states=(32, 7, 5), encoder_hidden_states=(88, 20))),
]
