"""Models of images and of videos."""
from ...entry import Entry
from ...inputs import floats


def _vision(name, stem, size, attention="eager", channels=(3,), **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}Model", config, floats(pixel_values=(*channels, *size)), attention)


ENTRIES = [
    _vision("pvt_v2", "PvtV2", (64, 64), image_size=64, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4],
            mlp_ratios=[2, 2, 2, 2], sr_ratios=[4, 2, 2, 1]),
    _vision("focalnet", "FocalNet", (48, 48), image_size=48, patch_size=4, embed_dim=24, hidden_sizes=[24, 48], depths=[1, 2], focal_levels=[2, 2],
            focal_windows=[3, 3], mlp_ratio=2.0, use_layerscale=True, layerscale_value=0.3),
    _vision("hiera", "Hiera", (64, 64), image_size=[64, 64], embed_dim=24, depths=[1, 1, 1], num_heads=[1, 2, 4], num_query_pool=2,
            masked_unit_size=[4, 4], masked_unit_attention=[True, False, False], mlp_ratio=2.0),
    _vision("timesformer", "Timesformer", (30, 30), channels=(3, 3), image_size=30, patch_size=6, num_frames=3, hidden_size=48, num_hidden_layers=2,
            num_attention_heads=4, intermediate_size=100),
    _vision("efficientnet", "EfficientNet", (37, 33), image_size=37, width_coefficient=0.25, depth_coefficient=1.0, depth_divisor=4, kernel_sizes=[3, 5],
            in_channels=[32, 64], out_channels=[64, 96], strides=[1, 2], num_block_repeats=[1, 2], expand_ratios=[1, 4], depthwise_padding=[],
            hidden_dim=320),
]
