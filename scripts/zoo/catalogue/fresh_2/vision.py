"""Models of images and of videos."""
from ...entry import Entry
from ...inputs import floats, image, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_WIDE = dict(hidden_size=104, num_hidden_layers=2, num_attention_heads=4, intermediate_size=212)


def _vision(name, stem, inputs, attention="sdpa", head="Model", **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention)


def _captioned(height, width, length, pad):
    return lambda seed: [{**image(height, width)(seed)[0], **tokens(length, 60, pad=pad)(seed)[0]}]


ENTRIES = [
    _vision("mobilenet_v2", "MobileNetV2", image(45, 39), "eager", depth_multiplier=0.25),
    _vision("cvt", "Cvt", image(47, 43), "eager", embed_dim=[16, 24, 48], num_heads=[1, 2, 4], depth=[1, 2, 3], mlp_ratio=[2.0, 2.0, 2.0]),
    _vision("yolos", "Yolos", image(42, 30), **_WIDE, image_size=[42, 30], patch_size=6, num_detection_tokens=5),
    _vision("vjepa2", "VJEPA2", floats(pixel_values_videos=(4, 3, 30, 30)), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2.0,
            patch_size=6, crop_size=30, frames_per_clip=4, pred_hidden_size=36, pred_num_attention_heads=3, pred_num_hidden_layers=2, pred_mlp_ratio=2.0,
            num_pooler_layers=1),
    _vision("dpt", "DPT", image(48, 48), head="ForDepthEstimation", **{**_SMALL, "num_hidden_layers": 4}, image_size=48, patch_size=8,
            backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[12, 16, 20, 24], fusion_hidden_size=16),
    _vision("bit", "Bit", image(45, 39), "eager", embedding_size=16, hidden_sizes=[32, 48, 64], depths=[1, 2, 1], num_groups=8),
    _vision("aimv2", "Aimv2", _captioned(30, 30, 13, 4), text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=20, eos_token_id=60),
            vision_config=dict(_WIDE, image_size=30, patch_size=6), projection_dim=40),
]
