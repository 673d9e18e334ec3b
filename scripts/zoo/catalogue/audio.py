"""Models of sound."""
from ..entry import Entry
from ..inputs import also, floats, times

_CONV = dict(conv_dim=(24, 24, 24), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_feat_extract_layers=3)
_SPEECH = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
               vocab_size=32, apply_spec_augment=False, **_CONV)

_WIDE = dict(hidden_size=104, intermediate_size=212)


def _speech(name, stem, attention="sdpa", **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}Model", {**_SPEECH, **config}, floats(input_values=(941,)), attention)


ENTRIES = [
    _speech("wav2vec2", "Wav2Vec2", **_WIDE),
    _speech("hubert", "Hubert", **_WIDE, do_stable_layer_norm=True, feat_extract_norm="layer"),
    _speech("wavlm", "WavLM", "eager", num_buckets=16, max_bucket_distance=24),
    _speech("data2vec_audio", "Data2VecAudio", "eager", conv_pos_kernel_size=5, num_conv_pos_embeddings=2),
    _speech("unispeech_sat", "UniSpeechSat", "eager"),
    Entry("ast", "audio", "transformers:ASTConfig:ASTModel",
          dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, patch_size=6, frequency_stride=5, time_stride=5,
               max_length=44, num_mel_bins=26), floats(input_values=(44, 26))),
    Entry("encodec", "audio", "transformers:EncodecConfig:EncodecModel",
          dict(num_filters=8, hidden_size=24, upsampling_ratios=[4, 3, 2], codebook_size=16, codebook_dim=24, num_lstm_layers=1, target_bandwidths=[1.5],
               sampling_rate=2400), floats(input_values=(1, 251)), "eager"),
    Entry("hifigan", "audio", "transformers:SpeechT5HifiGanConfig:SpeechT5HifiGan",
          dict(model_in_dim=20, upsample_initial_channel=32, upsample_rates=[4, 3], upsample_kernel_sizes=[8, 7], resblock_kernel_sizes=[3, 5],
               resblock_dilation_sizes=[[1, 3], [1, 3]]), floats(spectrogram=(23, 20)), "eager"),
    Entry("stable_audio", "audio", "diffusers:StableAudioDiTModel",
          dict(sample_size=26, in_channels=6, out_channels=6, num_layers=2, attention_head_dim=12, num_attention_heads=4, num_key_value_attention_heads=2,
               cross_attention_dim=24, cross_attention_input_dim=20, global_states_input_dim=28, time_proj_dim=16),
          also(floats(hidden_states=(6, 26), encoder_hidden_states=(9, 20), global_hidden_states=(1, 28)), timestep=times(0.7, 0.1))),
]
