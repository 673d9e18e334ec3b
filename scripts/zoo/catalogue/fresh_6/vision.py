"""Models of images, of captioned images and of videos."""
import torch

from selftest_models.weights import normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, image, pixel_mask, prompt_mask, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)


def _vision(name, stem, inputs, attention="sdpa", head="Model", batch=True, tables=False, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch, tables=tables)


def _read(size=0, length=19, pad=5, **images):
    """Words, and an image or several ones."""
    return lambda seed: [{**tokens(length, 61, pad=pad)(seed)[0], **(floats(**images) if images else image(size, size))(seed)[0]}]


def _grounded(seed):
    """A caption that begins with the seven places of the image."""
    call = _read(36, 23)(seed)[0]
    places = torch.zeros(BATCH, 23, dtype=torch.long)
    places[:, 2:9] = 1
    return [{**call, "image_embeds_position_mask": places}]


def _packed(seed):
    """Patches of two images of 5 by 7 and of 4 by 3."""
    return [{"pixel_values": normal("patches", (35 + 12, 108), seed), "image_grid_hw": torch.tensor([[5, 7], [4, 3]])}]


_RESNET = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 24, 32], depths=[1, 1, 1], layer_type="bottleneck", out_features=["stage3"])

ENTRIES = [
    _vision("bridgetower", "BridgeTower", _read(64), "eager", hidden_size=64, num_attention_heads=4, num_hidden_layers=2,
            share_cross_modal_transformer_layers=False, share_link_tower_layers=False,
            text_config=dict(vocab_size=61, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=100, max_position_embeddings=40),
            vision_config=dict(hidden_size=64, num_hidden_layers=3, patch_size=16, image_size=64)),
    _vision("dab_detr", "DabDetr", also(image(48, 66), pixel_mask=pixel_mask(48, 66, 18)), "eager", "ForObjectDetection", backbone_config=_RESNET,
            hidden_size=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92,
            num_queries=7, num_patterns=2, random_refpoints_xy=True, num_labels=5),
    _vision("git", "Git", _read(pixel_values=(2, 3, 36, 36)), "eager", "ForCausalLM", **_SMALL, vocab_size=61,
            max_position_embeddings=40, num_image_with_embedding=2, bos_token_id=1, eos_token_id=2, vision_config=dict(_SMALL, image_size=36, patch_size=6)),
    _vision("kosmos2", "Kosmos2", _grounded, "eager", "ForConditionalGeneration", tables=True, latent_query_num=7,
            text_config=dict(vocab_size=61, max_position_embeddings=64, embed_dim=48, layers=2, ffn_dim=100, attention_heads=4),
            vision_config=dict(_SMALL, image_size=36, patch_size=6)),
    _vision("radio", "Radio", _packed, batch=False, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2.0, patch_size=6, image_size=36,
            max_img_size=48, num_cls_tokens=2, num_registers=3, use_swiglu_ffn=True, layerscale_value=0.7),
    _vision("sapiens2", "Sapiens2", image(48, 36), head="ForPoseEstimation", **{**_SMALL, "num_hidden_layers": 3}, image_size=[48, 36], patch_size=6,
            num_register_tokens=3, num_key_value_attention_heads=2, num_first_full_attention_layers=1, num_last_full_attention_layers=1, num_labels=5,
            head_config=dict(upsample_out_channels=[32, 24], conv_out_channels=[24])),
    _vision("uvdoc", "UVDoc", image(96, 80), "eager", bridge_connector=[24, 32], out_point_positions2D=[[32, 12], [12, 2]],
            backbone_config=dict(model_type="uvdoc_backbone", resnet_head=[[3, 12], [12, 12]], stage_configs=[[[24, 1]], [[24, 3], [24, 2]]],
                                 resnet_configs=[[[12, 12, 1, False], [12, 12, 3, False]], [[12, 24, 1, True], [24, 24, 3, False]]],
                                 out_features=["stage1", "stage2"])),
    _vision("videoprism", "VideoPrism",
            also(_read(length=17, pixel_values_videos=(3, 3, 36, 36)), temperature=0.7), "eager", "ClipModel", batch=False,
            text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=40),
            vision_config=dict(hidden_size=48, num_attention_heads=4, intermediate_size=100, image_size=36, num_frames=3, tubelet_size=[1, 6, 6],
                               num_spatial_layers=2, num_temporal_layers=1, num_auxiliary_layers=1)),
]
