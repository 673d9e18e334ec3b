"""Models of images: among words (as codes of a quantizer, as patches, in crops, packed), beside texts, of frames; detectors, keypoints in two images, depth."""
import torch

from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, image, pixel_mask, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_TEXT = dict(_SMALL, vocab_size=61, num_key_value_heads=2, max_position_embeddings=64)
_RESNET = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], layer_type="basic")


def _vision(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _image_words(places, height, width, **more):
    """So many places of the image (7) after two words, then words."""
    def make(seed):
        call = tokens(places + 11, 61, pad=5, low=8)(seed)[0]
        call["input_ids"][:, 2:2 + places] = 7
        return [{**call, **image(height, width)(seed)[0], **{k: v(seed) for k, v in more.items()}}]
    return make


def _crops(seed):
    """Each image small and in one crop: two rows of three places and one of two, each of four patches; the last place lacks one. Words between them."""
    call = tokens(29, 60, pad=5, low=8)(seed)[0]
    call["input_ids"][:, 3:9], call["input_ids"][:, 11:13] = 7, 7
    patches = torch.stack([torch.arange(4) + 4 * n for n in range(8)])
    patches[-1, -1] = -1
    more = 36 * torch.arange(2 * BATCH)[::2, None, None]
    kinds = (call["input_ids"] == 7).long()
    return [{**call, **floats(pixel_values=(2, 36, 108))(seed)[0], "mm_token_type_ids": kinds, "image_grids": torch.tensor([[1, 2, 2, 3]] * BATCH),
             "image_token_pooling": torch.where(patches < 0, -1, patches + more).flatten(0, 1)}]


def _asked(seed):
    """Two classes for the first image and three for the second one, and a task for each."""
    classes = integers("classes", (5, 6), 58, seed) + 3
    task = tokens(9, 61, pad=3)(seed)[0]
    return [{**image(64, 96)(seed)[0], "classes_input_ids": classes, "classes_attention_mask": torch.ones_like(classes),
             "tasks_input_ids": task["input_ids"], "tasks_attention_mask": task["attention_mask"], "classes_structure": torch.tensor([2, 3])}]


def _packed(seed):
    """One image of eight by eight patches (four words, 7) and one of four by twelve (three words), packed in one row, each with a sign before and after it."""
    call = tokens(23, 61, pad=5, low=8)(seed)[0]
    for row, places in enumerate((4, 3)):
        call["input_ids"][row, 3], call["input_ids"][row, 4:4 + places], call["input_ids"][row, 4 + places] = 5, 7, 6
    return [{**call, "mm_token_type_ids": (call["input_ids"] == 7).long(), "pixel_values": normal("patches", (1, 3, 6, 6 * (64 + 48)), seed),
             "target_sizes": torch.tensor([[8, 8], [4, 12]])}]


_CODES = {"<image>": 7, "<|extra_200|>": 6, **{f"<|visual token {n:06d}|>": 20 + n for n in range(32)}}   # which word is which code of the image

ENTRIES = [
    _vision("emu3", "Emu3", _image_words(20, 32, 32, image_sizes=lambda _seed: torch.tensor([[32, 32]] * BATCH)), head="ForConditionalGeneration",
            batch=False, vocabulary_map=_CODES, text_config=dict(_TEXT, pad_token_id=0, bos_token_id=1, eos_token_id=2, attention_dropout=0.0),
            vq_config=dict(codebook_size=32, embed_dim=6, latent_channels=6, base_channels=32, channel_multiplier=[1, 1, 2, 2], num_res_blocks=1,
                           attn_resolutions=[3], hidden_size=64, num_attention_heads=2, temporal_downsample_factor=2)),
    _vision("janus", "Janus", _image_words(16, 32, 32), head="ForConditionalGeneration", batch=False, image_token_id=7,
            text_config=dict(_TEXT, model_type="qwen2"),
            vision_config=dict(hidden_size=40, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8, mlp_ratio=2.0, projection_dim=48,
                               num_image_tokens=16),
            vq_config=dict(embed_dim=6, num_embeddings=32, latent_channels=12, base_channels=32, channel_multiplier=[1, 2], num_res_blocks=1,
                           projection_dim=48, image_token_embed_dim=48)),
    _vision("molmo2", "Molmo2", _crops, head="ForConditionalGeneration", batch=False, image_patch_id=7,
            vision_config=dict(hidden_size=40, intermediate_size=92, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, head_dim=10,
                               image_size=[36, 36], patch_size=6),
            adapter_config=dict(vision_feature_layer=[2, 0], hidden_size=40, num_attention_heads=4, num_key_value_heads=2, head_dim=10,
                                intermediate_size=92, text_hidden_size=48),
            text_config=dict(_TEXT, vocab_size=53, additional_vocab_size=8, head_dim=12)),
    _vision("minicpmv4_7", "MiniCPMV4_7", _packed, head="ForConditionalGeneration", batch=False, image_token_id=7, image_start_id=5, image_end_id=6,
            insert_layer_id=1,
            vision_config=dict(hidden_size=40, intermediate_size=92, num_hidden_layers=3, num_attention_heads=4, image_size=72, patch_size=6),
            text_config=dict(_TEXT, model_type="qwen3_5_text", num_hidden_layers=3, head_dim=24, linear_key_head_dim=8, linear_value_head_dim=12,
                             linear_num_key_heads=2, linear_num_value_heads=4, layer_types=["linear_attention", "full_attention", "linear_attention"],
                             rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25, mrope_section=[1, 1, 1]))),
    _vision("tipsv2", "Tipsv2", also(tokens(17, 61), pixel_values=lambda seed: floats(image=(3, 36, 36))(seed)[0]["image"]), batch=False,
            text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=40),
            vision_config=dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, image_size=36, patch_size=6, layerscale_value=0.7)),
    _vision("x_clip", "XCLIP", also(tokens(13, 61, pad=4), pixel_values=lambda seed: floats(frames=(3, 3, 36, 36))(seed)[0]["frames"]), batch=False,
            projection_dim=40, prompt_layers=2, prompt_num_attention_heads=4, text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=40),
            vision_config=dict(_SMALL, image_size=36, patch_size=6, num_frames=3, mit_hidden_size=40, mit_intermediate_size=92, mit_num_hidden_layers=1,
                               mit_num_attention_heads=4)),
    _vision("omdet_turbo", "OmDetTurbo", _asked, "eager", "ForObjectDetection", batch=False, apply_layernorm_after_vision_backbone=False, image_size=96,
            text_projection_in_dim=44, text_projection_out_dim=44, task_encoder_hidden_dim=92, class_embed_dim=44, num_queries=7, encoder_hidden_dim=32,
            vision_features_channels=[32, 32, 32], encoder_in_channels=[24, 32, 40], encoder_attention_heads=4, encoder_dim_feedforward=76,
            decoder_hidden_dim=32, decoder_num_heads=4, decoder_num_layers=2, decoder_dim_feedforward=68, decoder_num_points=2,
            backbone_config=dict(_RESNET, out_features=["stage2", "stage3", "stage4"]),
            text_config=dict(_SMALL, model_type="clip_text_model", hidden_size=44, vocab_size=61, max_position_embeddings=40)),
    _vision("conditional_detr", "ConditionalDetr", also(image(48, 66), pixel_mask=pixel_mask(48, 66, 18)), "eager", "ForObjectDetection", d_model=48,
            encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92,
            num_queries=7, num_labels=5, backbone_config=dict(_RESNET, hidden_sizes=[16, 24, 32], depths=[1, 1, 1], out_features=["stage3"])),
    _vision("superglue", "SuperGlue", floats(pixel_values=(2, 1, 48, 64)), "eager", "ForKeypointMatching", batch=False, hidden_size=40,
            keypoint_encoder_sizes=[12, 20], gnn_layers_types=["self", "cross", "self", "cross"], num_attention_heads=4, sinkhorn_iterations=7,
            keypoint_detector_config=dict(model_type="superpoint", encoder_hidden_sizes=[16, 16, 24, 32], decoder_hidden_size=48, keypoint_decoder_dim=65,
                                          descriptor_decoder_dim=40, keypoint_threshold=0.01, max_keypoints=23, border_removal_distance=2)),
    _vision("glpn", "GLPN", image(64, 96), "eager", "ForDepthEstimation", depths=[1, 1, 2, 1], hidden_sizes=[16, 24, 32, 48], num_attention_heads=[1, 2, 2, 4],
            mlp_ratios=[2, 2, 2, 2], decoder_hidden_size=24),
]
