"""Models of sound."""
from ...entry import Entry
from ...inputs import also, floats, prompt_mask, steps, times

_CONV = dict(conv_dim=(24, 24, 24), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
             apply_spec_augment=False)


def _audio(name, stem, inputs, attention="eager", **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}Model", config, inputs, attention)


ENTRIES = [
    _audio("sew_d", "SEWD", floats(input_values=(941,)), **_CONV, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100,
           squeeze_factor=2, position_buckets=8),
    Entry("bark", "audio", "transformers:BarkSemanticConfig:BarkSemanticModel",
          dict(input_vocab_size=61, output_vocab_size=61, num_layers=2, num_heads=4, hidden_size=104, block_size=64), steps((37, 6), 61), "eager", cached=True),
    _audio("mimi", "Mimi", floats(input_values=(1, 251)), "sdpa", hidden_size=48, num_filters=8, upsampling_ratios=[4, 3], num_hidden_layers=2,
           num_attention_heads=4, num_key_value_heads=2, head_dim=12, intermediate_size=100, sliding_window=9, codebook_size=16, codebook_dim=12,
           vector_quantization_hidden_dimension=12, num_quantizers=3, upsample_groups=48, sampling_rate=2400),
    Entry("parakeet", "audio", "transformers:ParakeetEncoderConfig:ParakeetEncoder",
          dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, conv_kernel_size=5, subsampling_factor=4,
               subsampling_conv_channels=8, num_mel_bins=20, max_position_embeddings=64),
          also(floats(input_features=(83, 20)), attention_mask=prompt_mask(83, 24)), "sdpa"),
    Entry("ace_step", "audio", "diffusers:AceStepTransformer1DModel",
          dict(hidden_size=96, intermediate_size=196, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=24, in_channels=22,
               audio_acoustic_hidden_dim=6, sliding_window=5, encoder_hidden_size=20),
          also(floats(hidden_states=(37, 6), context_latents=(37, 16), encoder_hidden_states=(9, 20)), timestep=times(0.713, 0.198),
               timestep_r=times(0.5, 0.1))),
]
