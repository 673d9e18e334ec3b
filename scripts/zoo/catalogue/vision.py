"""Models of images."""
from ..entry import Entry
from ..inputs import floats, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_PATCHES = dict(_SMALL, image_size=30, patch_size=6)
_WIDE = dict(hidden_size=104, num_hidden_layers=2, num_attention_heads=4, intermediate_size=212, image_size=42, patch_size=6)
_TOWERS = dict(text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=20, eos_token_id=60), vision_config=_PATCHES)


def _vision(name, stem, model=None, size=(30, 30), channels=3, inputs=None, attention="sdpa", **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{model or stem + 'Model'}", config, inputs or floats(pixel_values=(channels, *size)),
                 attention=attention)


def _two_towers(pad):
    image = floats(pixel_values=(3, 30, 30))
    return lambda seed: [{**image(seed)[0], **tokens(13, 60, pad=pad)(seed)[0]}]


ENTRIES = [
    _vision("clip", "CLIP", **_TOWERS, projection_dim=40, inputs=_two_towers(4)),
    _vision("siglip", "Siglip", **_TOWERS, inputs=_two_towers(0)),
    _vision("vit", "ViT", **_WIDE, size=(42, 42)),
    _vision("deit", "DeiT", attention="eager", **_PATCHES),
    _vision("beit", "Beit", **_WIDE, size=(42, 42), use_relative_position_bias=True, layer_scale_init_value=0.1),
    _vision("dinov2", "Dinov2", size=(42, 42), hidden_size=104, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, image_size=42, patch_size=6),
    _vision("segformer", "Segformer", "SegformerForSemanticSegmentation", size=(52, 44), num_encoder_blocks=4, depths=[1, 1, 1, 1], sr_ratios=[4, 2, 2, 1],
            hidden_sizes=[12, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=28, num_labels=5),
    _vision("resnet", "ResNet", "ResNetForImageClassification", attention="eager", size=(45, 39), embedding_size=16, hidden_sizes=[16, 24, 32],
            depths=[1, 2, 1], layer_type="basic", num_labels=7),
    _vision("regnet", "RegNet", attention="eager", size=(45, 39), embedding_size=16, hidden_sizes=[16, 32, 48], depths=[1, 1, 1], groups_width=8),
    _vision("poolformer", "PoolFormer", attention="eager", size=(50, 46), hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], mlp_ratio=2.0),
    _vision("mobilevit", "MobileViT", attention="eager", size=(64, 64), image_size=64, hidden_sizes=[24, 32, 40], neck_hidden_sizes=[8, 12, 16, 20, 24, 28, 48],
            num_attention_heads=4, mlp_ratio=2.0),
    _vision("vitdet", "VitDet", attention="eager", hidden_size=48, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2, image_size=30, patch_size=6,
            pretrain_image_size=30, use_relative_position_embeddings=True, window_block_indices=[0], window_size=3),
]

