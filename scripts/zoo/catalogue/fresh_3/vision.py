"""Models of images, of videos and of captioned images."""
from ...entry import Entry
from ...inputs import also, floats, image, pixel_mask, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_BASE = dict(hidden_size=48, num_attention_heads=4, intermediate_size=100)
_WIDE = dict(hidden_size=104, num_hidden_layers=2, num_attention_heads=4, intermediate_size=212)


def _vision(name, stem, inputs, attention="sdpa", head="Model", **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention)


def _regions(count, width):
    return lambda seed: floats(regions=(count, width))(seed)[0]["regions"]


def _captioned(seed):
    return [{**image(30, 42)(seed)[0], **tokens(13, 61, pad=4)(seed)[0], "pixel_mask": pixel_mask(30, 42, 12)(seed)}]


ENTRIES = [
    _vision("hgnet_v2", "HGNetV2", image(45, 39), "eager", "ForImageClassification", embedding_size=16, stem_channels=[3, 12, 16], num_labels=7,
            depths=[1, 1, 1], hidden_sizes=[24, 32, 48], stage_in_channels=[16, 24, 32], stage_mid_channels=[12, 16, 20], stage_out_channels=[24, 32, 48],
            stage_num_blocks=[1, 1, 2], stage_downsample=[False, True, True], stage_downsample_strides=[2, 2, 2], stage_light_block=[False, False, True],
            stage_kernel_size=[3, 3, 5], stage_numb_of_layers=[2, 2, 2], use_learnable_affine_block=True),
    _vision("imagegpt", "ImageGPT", tokens(37, 61, low=0), "eager", vocab_size=62, n_positions=64, n_embd=48, n_layer=2, n_head=4),
    _vision("seggpt", "SegGpt", floats(pixel_values=(3, 24, 24), prompt_pixel_values=(3, 24, 24), prompt_masks=(3, 24, 24)), "eager", hidden_size=48,
            num_hidden_layers=4, num_attention_heads=4, mlp_dim=100, image_size=[48, 24], patch_size=6, pretrain_image_size=24, merge_index=1,
            intermediate_hidden_state_indices=[1, 3], decoder_hidden_size=16),
    _vision("vilt", "Vilt", _captioned, "eager", **_WIDE, vocab_size=61, image_size=42, patch_size=6),
    _vision("lxmert", "Lxmert", also(tokens(13, 61, pad=4), visual_feats=_regions(7, 20), visual_pos=_regions(7, 4)), "eager", **_BASE, vocab_size=61,
            l_layers=2, r_layers=1, x_layers=2, visual_feat_dim=20, max_position_embeddings=20),
    _vision("videomae", "VideoMAE", floats(pixel_values=(4, 3, 30, 30)), **_SMALL, image_size=30, patch_size=6, num_frames=4, use_mean_pooling=False),
    _vision("mgp_str", "Mgpstr", image(12, 42), "eager", "ForSceneTextRecognition", image_size=[12, 42], patch_size=6, max_token_length=5,
            num_character_labels=11, num_bpe_labels=19, num_wordpiece_labels=17, hidden_size=104, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2.0),
]
