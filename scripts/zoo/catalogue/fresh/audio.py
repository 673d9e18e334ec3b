"""Models of sound."""
from ...entry import Entry
from ...inputs import also, floats, tokens

_CONV = dict(conv_dim=(24, 24, 24), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
             apply_spec_augment=False)
_HEADS = dict(num_hidden_layers=2, num_attention_heads=4)


def _audio(name, stem, inputs, attention="eager", tables=False, **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}Model", config, inputs, attention, tables=tables)


ENTRIES = [
    _audio("sew", "SEW", floats(input_values=(941,)), **_CONV, **_HEADS, hidden_size=104, intermediate_size=212, squeeze_factor=2, feat_extract_norm="layer"),
    _audio("conformer", "Wav2Vec2Conformer", floats(input_values=(941,)), **_CONV, **_HEADS, num_feat_extract_layers=3, hidden_size=48, intermediate_size=100,
           position_embeddings_type="rotary", conv_depthwise_kernel_size=7),
    _audio("speech_to_text", "Speech2Text", also(floats(input_features=(61, 20)), decoder_input_ids=lambda seed: tokens(11, 61)(seed)[0]["input_ids"]),
           vocab_size=61, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100,
           decoder_ffn_dim=92, num_conv_layers=2, conv_kernel_sizes=(5, 5), conv_channels=64, input_feat_per_channel=20, max_source_positions=70,
           max_target_positions=40, tables=True),
    _audio("dac", "Dac", floats(input_values=(1, 250)), encoder_hidden_size=8, downsampling_ratios=[2, 5], decoder_hidden_size=32, n_codebooks=2,
           codebook_size=16, codebook_dim=6),
    Entry("univnet", "audio", "transformers:UnivNetConfig:UnivNetModel",
          dict(model_in_channels=8, model_hidden_channels=12, num_mel_bins=20, resblock_kernel_sizes=[3, 3], resblock_stride_sizes=[2, 3],
               resblock_dilation_sizes=[[1, 3], [1, 3]], kernel_predictor_num_blocks=1, kernel_predictor_hidden_channels=8),
          floats(input_features=(17, 20), noise_sequence=(17, 8)), "eager"),
]
