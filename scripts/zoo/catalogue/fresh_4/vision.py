"""Models of images, of pages and of captioned images."""
import torch

from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, image, pixel_mask, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)


def _vision(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _page(seed):
    """Words, a picture of their page, and left, top, right and bottom of each word on it, out of 100."""
    corner, size = (integers(name, (BATCH, 19, 2), most, seed) for name, most in (("corner", 60), ("size", 40)))
    return [{**tokens(19, 61, pad=5)(seed)[0], **image(30, 30)(seed)[0], "bbox": torch.cat([corner, corner + size], dim=-1)}]


def _captioned(seed):
    """An image of 25 places and its mean, a prompt, the beginning of an answer."""
    call = tokens(37, 58, pad=4)(seed)[0]
    call["input_ids"][:, 1:27] = 60
    return [{**image(36, 36)(seed)[0], **call, "decoder_input_ids": tokens(7, 58)(seed)[0]["input_ids"]}]


def _patches(seed):
    """Two images of 6 by 8 and of 4 by 6 patches, each patch of two equal frames of 3 x 4 x 4 pixels, four patches to a token."""
    call = tokens(29, 58, pad=4)(seed)[0]
    call["input_ids"][0, 5:17], call["input_ids"][1, 8:14] = 60, 60
    call["input_ids"][0, 4], call["input_ids"][1, 7] = 58, 58
    kinds = (call["input_ids"] == 60).long()
    return [{**call, "pixel_values": normal("patches", (48 + 24, 96), seed), "image_grid_thw": torch.tensor([[1, 6, 8], [1, 4, 6]]), "mm_token_type_ids": kinds}]


def _points(seed):
    """Two points in or outside of the thing, in pixels."""
    return {"input_points": normal("points", (BATCH, 1, 2, 2), seed).sigmoid() * 64, "input_labels": torch.tensor([[[1, 0]], [[1, 1]]])}


_RESNET = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 24, 32], depths=[1, 1, 1], layer_type="basic", out_features=["stage2", "stage3"])
_HIERA = dict(hidden_size=16, num_attention_heads=1, image_size=[64, 64], query_stride=[2, 2], window_positional_embedding_background_size=[4, 4],
              num_query_pool_stages=3, blocks_per_stage=[1, 1, 2, 1], embed_dim_per_stage=[16, 24, 32, 48], num_attention_heads_per_stage=[1, 2, 4, 4],
              window_size_per_stage=[4, 2, 3, 2], global_attention_blocks=[3], mlp_ratio=2.0)

ENTRIES = [
    _vision("deformable_detr", "DeformableDetr", also(image(48, 66), pixel_mask=pixel_mask(48, 66, 18)), "eager", backbone_config=_RESNET, d_model=64,
            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, num_queries=7,
            num_feature_levels=3, encoder_n_points=3, decoder_n_points=3, disable_custom_kernels=True),
    _vision("sam2", "Sam2", lambda seed: [{**image(64, 64)(seed)[0], **_points(seed)}],
            vision_config=dict(backbone_config=dict(model_type="sam2_hiera_det_model", **_HIERA), backbone_channel_list=[48, 32, 24, 16],
                               backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]], fpn_hidden_size=32),
            prompt_encoder_config=dict(hidden_size=32, image_size=64, patch_size=16, mask_input_channels=8),
            mask_decoder_config=dict(hidden_size=32, mlp_dim=68, num_attention_heads=4, iou_head_hidden_dim=28)),
    _vision("superpoint", "SuperPoint", image(40, 48), "eager", "ForKeypointDetection", encoder_hidden_sizes=[16, 24, 32, 48], decoder_hidden_size=40,
            descriptor_decoder_dim=28, keypoint_threshold=0.02, nms_radius=1),
    _vision("florence2", "Florence2", _captioned, image_token_id=60,
            text_config=dict(model_type="bart", vocab_size=61, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, max_position_embeddings=64),
            vision_config=dict(depths=[1, 1], patch_size=[7, 3], patch_stride=[4, 2], patch_padding=[3, 1], patch_prenorm=[False, True], embed_dim=[16, 32],
                               num_heads=[2, 4], num_groups=[2, 4], window_size=3, mlp_ratio=2.0, projection_dim=48, max_position_embeddings=8)),
    _vision("swiftformer", "SwiftFormer", image(64, 96), "eager", depths=[2, 2, 2, 2], embed_dims=[16, 24, 32, 48], mlp_ratio=2),
    _vision("layoutlmv3", "LayoutLMv3", _page, "eager", **_SMALL, vocab_size=61, max_position_embeddings=40, max_2d_position_embeddings=128, coordinate_size=8,
            shape_size=8, rel_pos_bins=8, max_rel_pos=16, rel_2d_pos_bins=8, max_rel_2d_pos=32, input_size=30, patch_size=6),
    _vision("qwen2_5_vl", "Qwen2_5_VL", _patches, batch=False, image_token_id=60, video_token_id=59, vision_start_token_id=58, vision_end_token_id=57,
            text_config=dict(_SMALL, vocab_size=61, num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2,
                             rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 2, 3])),
            vision_config=dict(depth=2, hidden_size=48, intermediate_size=100, num_heads=4, patch_size=4, window_size=16, out_hidden_size=48,
                               fullatt_block_indexes=[1])),
    _vision("zoedepth", "ZoeDepth", image(48, 60), "eager", "ForDepthEstimation",
            backbone_config=dict(model_type="beit", image_size=48, patch_size=8, hidden_size=48, num_hidden_layers=4, num_attention_heads=4, intermediate_size=100,
                                 use_relative_position_bias=True, reshape_hidden_states=False, out_features=["stage1", "stage2", "stage3", "stage4"]),
            neck_hidden_sizes=[12, 16, 20, 24], fusion_hidden_size=16, bottleneck_features=16, num_relative_features=8, num_attractors=[4, 3, 2, 1],
            bin_embedding_dim=16, bin_configurations=[{"n_bins": 8, "min_depth": 0.001, "max_depth": 10.0, "name": "rooms"}]),
]
