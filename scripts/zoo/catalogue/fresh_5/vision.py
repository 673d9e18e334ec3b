"""Models of images, of pages and of captioned images."""
import torch

from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, image, pixel_mask, prompt_mask, tokens

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_DETECTOR = dict(d_model=64, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, decoder_layers=2, num_labels=5)


def _vision(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _queries(seed):
    """Three things to look for in each image, of up to 9 tokens with their beginning (58) and end (60); the second image has two, its third is padding."""
    ids = 3 + integers("ids", (BATCH * 3, 9), 55, seed)
    ends = torch.tensor([8, 5, 7, 6, 8, 0])[:, None]
    places = torch.arange(9)[None]
    ids = torch.where(places < ends, ids, 0).masked_fill((places == ends) & (ends > 0), 60)
    ids[:5, 0] = 58
    return [{**image(30, 30)(seed)[0], "input_ids": ids, "attention_mask": (places <= ends).long()}]


def _asked(seed):
    """An image that becomes 7 tokens, and a question."""
    call = tokens(23, 58, pad=4)(seed)[0]
    call["input_ids"][:, :7] = 60
    return [{**image(30, 30)(seed)[0], **call}]


def _patches(seed):
    """Pages of 4 by 6 and of 5 by 4 patches, each with its row and column before its 3 x 4 x 4 pixels, and four patches of padding; the beginning of a text."""
    patches = torch.cat([torch.zeros(BATCH, 24, 2), normal("patches", (BATCH, 24, 48), seed)], dim=-1)
    for i, (rows, columns) in enumerate(((4, 6), (5, 4))):
        patches[i, :rows * columns, :2] = 1 + torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    patches[1, 20:] = 0
    return [{"flattened_patches": patches, "attention_mask": prompt_mask(24, 4)(seed), "decoder_input_ids": 3 + integers("ids", (BATCH, 11), 58, seed),
             "decoder_attention_mask": prompt_mask(11, 3)(seed)}]


def _interleaved(seed):
    """Two images of 9 tokens in the first prompt; in the second prompt one, which fills four sixths of its width, and a padding image of zeros."""
    call = tokens(31, 58, pad=5)(seed)[0]
    call["input_ids"][0, 2:11], call["input_ids"][0, 14:23], call["input_ids"][1, 5:14] = 60, 60, 60
    pixels, mask = normal("pixels", (BATCH, 2, 3, 30, 30), seed), torch.ones(BATCH, 2, 30, 30, dtype=torch.bool)
    mask[1, 0, :, 20:], mask[1, 1] = False, False
    return [{**call, "pixel_values": pixels * mask[:, :, None], "pixel_attention_mask": mask}]


def _views(seed):
    """Two views of each scene: in the second one all is 16 pixels further to the right, and there is noise. Grey, thrice."""
    first = normal("scene", (BATCH, 1, 64, 96), seed)
    second = first.roll(16, -1) + 0.2 * normal("noise", (BATCH, 1, 64, 96), seed)
    return [{"pixel_values": torch.stack([first, second], dim=1).repeat(1, 1, 3, 1, 1)}]


ENTRIES = [
    _vision("owlv2", "Owlv2", _queries, head="ForObjectDetection", batch=False, projection_dim=48,
            text_config=dict(_SMALL, vocab_size=61, max_position_embeddings=16, bos_token_id=58, eos_token_id=60),
            vision_config=dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=132, image_size=30, patch_size=6)),
    _vision("rt_detr_v2", "RTDetrV2", image(64, 96), "eager", "ForObjectDetection", **_DETECTOR, encoder_layers=1, encoder_hidden_dim=64, num_queries=7,
            encoder_in_channels=[24, 32, 48], decoder_in_channels=[64, 64, 64], decoder_n_points=3, hidden_expansion=0.5,
            backbone_config=dict(model_type="rt_detr_resnet", embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], layer_type="basic",
                                 out_features=["stage2", "stage3", "stage4"])),
    _vision("textnet", "TextNet", image(70, 54), "eager", "ForImageClassification", stem_out_channels=16, hidden_sizes=[16, 20, 24, 32, 48], num_labels=7,
            conv_layer_kernel_sizes=[[[3, 3], [3, 3]], [[3, 3], [1, 3]], [[3, 3], [3, 1]], [[3, 3], [3, 3]]],
            conv_layer_strides=[[1, 2], [2, 1], [2, 1], [2, 1]]),
    _vision("blip_2", "Blip2", _asked, image_token_index=60, num_query_tokens=7,
            vision_config=dict(_SMALL, hidden_size=64, image_size=30, patch_size=6),
            qformer_config=dict(_SMALL, num_hidden_layers=3, cross_attention_frequency=2),
            text_config=dict(model_type="opt", vocab_size=61, hidden_size=56, word_embed_proj_dim=56, num_hidden_layers=2, num_attention_heads=4, ffn_dim=116,
                             max_position_embeddings=32)),
    _vision("pix2struct", "Pix2Struct", _patches, "eager", "ForConditionalGeneration",
            text_config=dict(vocab_size=61, hidden_size=48, d_kv=12, d_ff=100, num_layers=2, num_heads=4, relative_attention_num_buckets=8,
                             relative_attention_max_distance=20),
            vision_config=dict(hidden_size=48, patch_embed_hidden_size=48, d_ff=92, d_kv=12, num_hidden_layers=2, num_attention_heads=4, seq_len=32)),
    _vision("idefics3", "Idefics3", _interleaved, image_token_id=60, scale_factor=2,
            text_config=dict(_SMALL, model_type="mistral", vocab_size=61, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0),
            vision_config=dict(_SMALL, hidden_size=64, image_size=30, patch_size=5)),
    # Its matches of a batch are joined so that those of samples mix.
    _vision("efficientloftr", "EfficientLoFTR", _views, head="ForKeypointMatching", batch=False, stage_num_blocks=[1, 1, 2, 2], out_features=[16, 20, 32, 48],
            hidden_size=48, num_attention_layers=2, num_attention_heads=4, coarse_matching_border_removal=1, coarse_matching_threshold=0.02,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=2.0)),
    _vision("table_transformer", "TableTransformer", also(image(66, 90), pixel_mask=pixel_mask(66, 90, 30)), "eager", "ForObjectDetection", **_DETECTOR,
            encoder_layers=2, num_queries=9,
            backbone_config=dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 24, 32], depths=[1, 1, 1], layer_type="basic",
                                 out_features=["stage3"])),
]
