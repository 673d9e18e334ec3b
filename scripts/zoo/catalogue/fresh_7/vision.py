"""Models of images, of pairs of images, of captioned images and of texts between images."""
import torch

from ...entry import Entry
from ...inputs import BATCH, also, floats, image, pixel_mask, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_BACKBONE = dict(model_type="dinov2", hidden_size=48, num_hidden_layers=4, num_attention_heads=4, mlp_ratio=2, patch_size=6, image_size=36)


def _vision(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _image_words(seed):
    """Sixteen places of the image (7) after two words, then words."""
    call = tokens(29, 61, pad=5, low=8)(seed)[0]
    call["input_ids"][:, 2:18] = 7
    return [{**call, **image(32, 32)(seed)[0]}]


def _two_images(seed):
    """A text between two images: words see none of them, the first one or the second one."""
    places = torch.arange(23)
    sees = torch.stack([(places >= 3) & (places < 13), places >= 13], dim=-1).long().repeat(BATCH, 1, 1)
    return [{**tokens(23, 61, pad=5)(seed)[0], **floats(pixel_values=(2, 3, 36, 36))(seed)[0], "image_attention_mask": sees}]


def _captioned(seed):
    return [{**tokens(17, 61, pad=5)(seed)[0], **image(30, 30)(seed)[0]}]


def _asked(seed):
    """Two questions to each image: two points and a box, a point that is not in it; and a rough mask."""
    call = {**image(48, 48)(seed)[0], **floats(input_masks=(1, 32, 32))(seed)[0]}
    points = floats(points=(2, 2, 2), corner=(2, 2), size=(2, 2))(seed)[0]
    corner = 30 * points["corner"].sigmoid()
    return [{**call, "input_points": 48 * points["points"].sigmoid(), "input_labels": torch.tensor([[[1, 1], [1, 0]]] * BATCH),
             "input_boxes": torch.cat([corner, corner + 18 * points["size"].sigmoid()], dim=-1)}]


def _around(size):
    """Kernel, stride and padding of a column, a row and a square of this size."""
    half = size // 2
    return [[size, 1], [1, 1], [half, 0]], [[1, size], [1, 1], [0, half]], [[size, size], [1, 1], [half, half]]


_FAMILIES = ("vertical_long_to_small_conv", "horizontal_small_to_long_conv", "symmetric_conv_long")
_RATIOS = {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0],
           **{f"{family}_{ratio}ratio": conv for ratio, size in (("long", 7), ("mid", 5), ("short", 3)) for family, conv in zip(_FAMILIES, _around(size))}}
_CODES = {"<image>": 7, **{f"IMGIMG{'ABCD'[n // 10]}{'ABCDEFGHIJ'[n % 10]}Z": 20 + n for n in range(32)}}   # which word is which code of the image

ENTRIES = [
    _vision("depth_pro", "DepthPro", image(72, 72), head="ForDepthEstimation", fusion_hidden_size=24, patch_size=36, intermediate_hook_ids=[3, 1],
            intermediate_feature_dims=[20, 24], scaled_images_ratios=[0.5, 1.0], scaled_images_overlap_ratios=[0.0, 0.5],
            scaled_images_feature_dims=[28, 32], use_fov_model=True, use_batch_norm_in_fusion_residual=True, image_model_config=_BACKBONE,
            patch_model_config=_BACKBONE, fov_model_config=_BACKBONE),
    _vision("lightglue", "LightGlue", floats(pixel_values=(2, 3, 48, 64)), "eager", "ForKeypointMatching", batch=False, descriptor_dim=64, num_hidden_layers=3,
            num_attention_heads=4, depth_confidence=0.95, width_confidence=0.99,
            keypoint_detector_config=dict(model_type="superpoint", encoder_hidden_sizes=[16, 16, 24, 32], decoder_hidden_size=48, keypoint_decoder_dim=65,
                                          descriptor_decoder_dim=40, keypoint_threshold=0.01, max_keypoints=23, border_removal_distance=2)),
    _vision("chameleon", "Chameleon", _image_words, head="ForConditionalGeneration", batch=False, **_SMALL, vocab_size=61, num_key_value_heads=2,
            max_position_embeddings=64, swin_norm=True, vocabulary_map=_CODES,
            vq_config=dict(embed_dim=12, num_embeddings=32, latent_channels=12, resolution=32, base_channels=32, channel_multiplier=[1, 1, 2, 2],
                           num_res_blocks=1, attn_resolutions=[4])),
    _vision("idefics", "Idefics", _two_images, "eager", "ForVisionText2Text", batch=False, **_SMALL, vocab_size=61, additional_vocab_size=4,
            cross_layer_interval=1, qk_layer_norms=True, use_resampler=True, alpha_type="vector", alpha_initializer="ones", max_position_embeddings=64,
            vision_config=dict(embed_dim=40, image_size=36, patch_size=6, num_hidden_layers=2, num_attention_heads=4, intermediate_size=92),
            perceiver_config=dict(use_resampler=True, resampler_n_latents=5, resampler_depth=1, resampler_n_heads=4, resampler_head_dim=12,
                                  qk_layer_norms_perceiver=True)),
    _vision("rf_detr", "RfDetr", also(image(72, 72), pixel_mask=pixel_mask(72, 72, 18)), head="ForObjectDetection", batch=False, d_model=48,
            decoder_ffn_dim=92, decoder_n_points=2, decoder_layers=2, decoder_self_attention_heads=4, decoder_cross_attention_heads=4, num_queries=7,
            group_detr=2, c2f_num_blocks=1, num_labels=5,
            backbone_config=dict(model_type="rf_detr_dinov2", hidden_size=48, num_hidden_layers=4, num_attention_heads=4, mlp_ratio=2, image_size=72,
                                 patch_size=6, num_windows=2, layerscale_value=0.7, out_features=["stage2", "stage4"])),
    _vision("flava", "Flava", _captioned, "eager", batch=False, hidden_size=48, projection_dim=40,
            image_config=dict(_SMALL, image_size=30, patch_size=6), text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=40),
            multimodal_config=_SMALL),
    _vision("pp_ocrv5_server_det", "PPOCRV5ServerDet", image(64, 96), "eager", "ForObjectDetection", neck_out_channels=32, reduce_factor=2,
            intraclass_block_config=_RATIOS, scale_factor_list=[1, 2, 4, 8], kernel_list=[3, 2, 2],
            backbone_config=dict(model_type="hgnet_v2", embedding_size=16, stem_channels=[3, 12, 16], depths=[1, 1, 1, 1], hidden_sizes=[24, 32, 40, 48],
                                 stage_in_channels=[16, 24, 32, 40], stage_mid_channels=[12, 16, 16, 20], stage_out_channels=[24, 32, 40, 48],
                                 stage_num_blocks=[1, 1, 1, 1], stage_downsample=[False, True, True, True], stage_downsample_strides=[2, 2, 2, 2],
                                 stage_light_block=[False, False, True, True], stage_kernel_size=[3, 3, 5, 5], stage_numb_of_layers=[2, 2, 2, 2],
                                 out_features=["stage1", "stage2", "stage3", "stage4"])),
    _vision("sam", "Sam", _asked, batch=False,
            vision_config=dict(hidden_size=48, output_channels=32, num_hidden_layers=3, num_attention_heads=4, image_size=48, patch_size=6, mlp_ratio=2.0,
                               window_size=5, global_attn_indexes=[1], num_pos_feats=16),
            prompt_encoder_config=dict(hidden_size=32, image_size=48, patch_size=6, mask_input_channels=12),
            mask_decoder_config=dict(hidden_size=32, mlp_dim=64, num_attention_heads=4, iou_head_hidden_dim=24)),
]
