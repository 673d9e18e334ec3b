"""Models of images: among words (also of frames, in crops, packed, as patches with their places, by a table of visual words), segmented, encoded, with a
rough depth; text found in images, text read in them, a table."""
import torch

from selftest_models.weights import normal

from ...entry import Entry
from ...inputs import BATCH, also, image, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_TEXT = dict(_SMALL, model_type="qwen2", vocab_size=61, num_key_value_heads=2, max_position_embeddings=160)
_EYE = dict(model_type="clip_vision_model", hidden_size=40, intermediate_size=92, num_hidden_layers=3, num_attention_heads=4, image_size=24, patch_size=6)
_STAGES = ["stage1", "stage2", "stage3", "stage4"]


def _vision(name, stem, inputs, attention="sdpa", head="Model", batch=True, tables=False, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch, tables=tables)


def _placed(first, second, *, length, **more):
    """So many places of each image (7) after two words, then words."""
    def make(seed):
        call = tokens(length, 61, pad=5, low=9)(seed)[0]
        call["input_ids"][0, 2:2 + first], call["input_ids"][1, 2:2 + second] = 7, 7
        return [{**call, **{k: v(seed) for k, v in more.items()}}]
    return make


def _picture(*shape):
    return lambda seed: normal("picture", shape, seed)


def _frames(seed):
    """An image (7) and three frames (8), between words."""
    call = tokens(83, 61, pad=5, low=9)(seed)[0]
    call["input_ids"][:, 2:18], call["input_ids"][:, 21:72] = 7, 8
    return [{**call, **image(24, 24)(seed)[0], "pixel_values_videos": normal("frames", (BATCH, 3, 3, 24, 24), seed)}]


def _rows(seed):
    """Patches of an image of four by four (eight words, 7) and of one of four by six (ten words)."""
    call = _placed(8, 10, length=29)(seed)[0]
    return [{**call, "mm_token_type_ids": (call["input_ids"] == 7).int(), "pixel_values": normal("patches", (16 + 24, 3 * 6 * 6), seed),
             "image_grid_thw": torch.tensor([[1, 4, 4], [1, 4, 6]])}]


def _merged(seed):
    """Pairs of patches of an image of four by four (four words, 7) and of one of four by six (six words)."""
    return [{**_placed(4, 6, length=29)(seed)[0], "pixel_values": normal("patches", (16 + 24, 3 * 2 * 6 * 6), seed),
             "image_grid_thw": torch.tensor([[1, 4, 4], [1, 4, 6]])}]


def _patches(seed):
    """Three rows of four patches, each with its row and its column before it; five places for the image."""
    places = torch.stack([torch.arange(12) // 4 + 1, torch.arange(12) % 4 + 1], dim=-1).float().expand(BATCH, -1, -1)
    return [{**tokens(29, 61, pad=6)(seed)[0], "flattened_patches": torch.cat([places, normal("patches", (BATCH, 12, 27), seed)], dim=-1),
             "image_embeds_position_mask": ((torch.arange(29) >= 2) & (torch.arange(29) < 7)).long().expand(BATCH, -1)}]


ENTRIES = [
    _vision("video_llava", "VideoLlava", _frames, head="ForConditionalGeneration", batch=False, image_token_index=7, video_token_index=8, vision_config=_EYE,
            text_config=_TEXT),
    _vision("pp_ocrv5_mobile_det", "PPOCRV5MobileDet", image(64, 96), "eager", "ForObjectDetection", neck_out_channels=32, layer_list_out_channels=[12, 20, 28, 36],
            backbone_config=dict(model_type="pp_lcnet_v3", scale=1.0, stem_channels=16, conv_symmetric_num=2, out_features=["stage2", "stage3", "stage4", "stage5"],
                                 block_configs=[[[3, 16, 16, 1, False]], [[3, 16, 24, 2, False]], [[3, 24, 32, 2, False]], [[3, 32, 40, 2, False]],
                                                [[5, 40, 48, 2, True], [5, 48, 48, 1, True]]])),
    _vision("hunyuan_vl", "HunYuanVL", _rows, head="ForConditionalGeneration", batch=False, image_token_id=7, tie_word_embeddings=False,
            vision_config=dict(hidden_size=40, intermediate_size=92, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, patch_size=6,
                               max_image_size=36, out_hidden_size=48, text_hidden_size=48),
            text_config=dict(_SMALL, vocab_size=61, num_key_value_heads=2, head_dim=16, max_position_embeddings=64, tie_word_embeddings=False,
                             rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2, 2]))),
    _vision("internvl", "InternVL", _placed(9, 9, length=29, pixel_values=_picture(BATCH, 3, 36, 36)), head="ForConditionalGeneration", batch=False,
            image_token_id=7, tie_word_embeddings=False, text_config=_TEXT,
            vision_config=dict(hidden_size=40, intermediate_size=92, num_hidden_layers=2, num_attention_heads=4, image_size=[36, 36], patch_size=[6, 6],
                               use_qk_norm=True)),
    _vision("llava_next", "LlavaNext", _placed(52, 56, length=71, pixel_values=_picture(BATCH, 3, 3, 24, 24),
                                               image_sizes=lambda _seed: torch.tensor([[24, 48], [40, 20]])),
            head="ForConditionalGeneration", batch=False, image_token_index=7, image_grid_pinpoints=[[24, 48], [48, 24], [48, 48]], vision_config=_EYE,
            text_config=_TEXT),
    _vision("slanext", "SLANeXt", image(48, 48), "eager", "ForTableRecognition", batch=False, post_conv_in_channels=24, post_conv_out_channels=32, out_channels=23,
            hidden_size=40, max_text_length=5,
            vision_config=dict(hidden_size=48, output_channels=24, num_hidden_layers=3, num_attention_heads=4, image_size=48, patch_size=6, mlp_dim=100,
                               window_size=5, global_attn_indexes=[1])),
    _vision("kosmos2_5", "Kosmos2_5", _patches, head="ForConditionalGeneration", batch=False, tables=True, latent_query_num=5, tie_word_embeddings=False,
            text_config=dict(vocab_size=61, max_position_embeddings=64, embed_dim=48, layers=2, ffn_dim=100, attention_heads=4, tie_word_embeddings=False),
            vision_config=dict(hidden_size=40, patch_embed_hidden_size=27, intermediate_size=92, head_dim=10, num_hidden_layers=2, num_attention_heads=4,
                               max_num_patches=16)),
    _vision("upernet", "UperNet", image(64, 96), "eager", "ForSemanticSegmentation", hidden_size=32, auxiliary_channels=20, num_labels=7,
            backbone_config=dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], layer_type="basic",
                                 out_features=_STAGES)),
    _vision("pp_lcnet_v4", "PPLCNetV4", image(66, 94), "eager", "Backbone", stem_channels=[3, 12, 24], out_features=_STAGES,
            block_configs=[[[3, 24, 24, 1, True]], [[3, 24, 24, 1, False]], [[3, 24, 32, [2, 1], False], [3, 32, 32, 1, True]], [[3, 32, 48, 2, True]]]),
    _vision("pp_ocrv5_server_rec", "PPOCRV5ServerRec", image(48, 92), "eager", "ForTextRecognition", hidden_size=40, head_out_channels=61, num_attention_heads=4,
            backbone_config=dict(model_type="hgnet_v2", embedding_size=16, stem_channels=[3, 12, 16], stem_strides=[2, 1, 1, 1, 1], depths=[1, 1, 1, 1],
                                 hidden_sizes=[24, 32, 40, 48], stage_in_channels=[16, 24, 32, 40], stage_mid_channels=[12, 16, 16, 20],
                                 stage_out_channels=[24, 32, 40, 48], stage_num_blocks=[1, 1, 1, 1], stage_downsample=[True] * 4,
                                 stage_downsample_strides=[[2, 1], [1, 2], [2, 1], [2, 1]], stage_light_block=[False, False, True, True],
                                 stage_kernel_size=[3, 3, 5, 5], stage_numb_of_layers=[2, 2, 2, 2], out_features=["stage4"])),
    _vision("prompt_depth_anything", "PromptDepthAnything", also(image(36, 48), prompt_depth=lambda seed: 3 + normal("depth", (BATCH, 1, 6, 8), seed)),
            attention="eager", head="ForDepthEstimation", batch=False, patch_size=6, reassemble_hidden_size=48, neck_hidden_sizes=[20, 24, 28, 32], fusion_hidden_size=24,
            head_hidden_size=16,
            backbone_config=dict(model_type="dinov2", hidden_size=48, num_hidden_layers=4, num_attention_heads=4, mlp_ratio=2, patch_size=6, image_size=36,
                                 out_features=_STAGES, reshape_hidden_states=False)),
    _vision("mlcd", "MLCDVision", image(42, 42), head="Model", hidden_size=48, intermediate_size=100, num_hidden_layers=3, num_attention_heads=4,
            image_size=42, patch_size=6),
    _vision("pp_ocrv6_tiny_rec", "PPOCRV6TinyRec", image(48, 92), "eager", "ForTextRecognition", hidden_size=40, head_out_channels=61,
            backbone_config=dict(model_type="pp_lcnet_v4", stem_channels=[3, 12, 24], out_features=["stage4"],
                                 block_configs=[[[3, 24, 24, 1, True]], [[3, 24, 24, 1, False]], [[3, 24, 32, [2, 1], False], [3, 32, 32, 1, True]],
                                                [[3, 32, 48, [2, 1], False]]])),
    _vision("fuyu", "Fuyu", _placed(12, 12, length=31, pixel_values=_picture(BATCH, 12, 108)), head="ForCausalLM", batch=False, image_token_id=7, patch_size=6,
            text_config=dict(_SMALL, model_type="persimmon", num_hidden_layers=3, vocab_size=61, max_position_embeddings=64, qk_layernorm=True)),
    _vision("ovis2", "Ovis2", _placed(9, 9, length=29, pixel_values=_picture(BATCH, 3, 36, 36)), head="ForConditionalGeneration", batch=False,
            image_token_id=7, tie_word_embeddings=False, visual_indicator_token_ids=[9, 10, 11, 12, 13], vocab_size=61, hidden_size=48, text_config=_TEXT,
            vision_config=dict(hidden_size=40, intermediate_size=92, num_hidden_layers=2, num_attention_heads=4, image_size=36, patch_size=6, vocab_size=37,
                               hidden_stride=2)),
    _vision("data2vec_vision", "Data2VecVision", image(42, 42), head="ForImageClassification", **_SMALL, image_size=42, patch_size=6, num_labels=7,
            use_relative_position_bias=True, use_absolute_position_embeddings=True),
    _vision("tipsv2_dpt", "Tipsv2Dpt", image(36, 48), "eager", "ForSemanticSegmentation", neck_hidden_sizes=[20, 24, 28, 32], fusion_hidden_size=24, num_labels=7,
            backbone_config=dict(model_type="tipsv2_vision_model", hidden_size=48, num_hidden_layers=4, num_attention_heads=4, mlp_ratio=2, patch_size=6,
                                 image_size=36, layerscale_value=0.7, out_features=_STAGES, reshape_hidden_states=False)),
    _vision("lfm3_vl", "Lfm3Vl", _merged, head="ForConditionalGeneration", batch=False, image_token_id=7, projector_hidden_size=56, tie_word_embeddings=False,
            text_config=_TEXT,
            vision_config=dict(hidden_size=48, intermediate_size=92, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, patch_size=6,
                               layer_types=["conv", "full_attention", "conv"])),
]
