"""Models of sound."""
from ...entry import Entry
from ...inputs import also, floats, prompt_mask, times, tokens


def _audio(name, stem, inputs, attention="eager", head="Model", tables=False, **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, tables=tables)


def _decoder_ids(seed):
    return tokens(11, 61)(seed)[0]["input_ids"]


_SEAMLESS = {f"{part}_{key}": value for part in ("encoder", "decoder", "t2u_encoder", "t2u_decoder") for key, value in (
    ("layers", 1), ("ffn_dim", 100), ("attention_heads", 4))}

ENTRIES = [
    _audio("moonshine", "Moonshine", also(floats(input_values=(2941,)), decoder_input_ids=_decoder_ids), "sdpa", vocab_size=61, hidden_size=104,
           intermediate_size=212, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2, encoder_num_attention_heads=4, decoder_num_attention_heads=4,
           encoder_num_key_value_heads=4, decoder_num_key_value_heads=4, max_position_embeddings=64),
    _audio("seamless_m4t_v2", "SeamlessM4Tv2",
           also(floats(input_features=(37, 20)), attention_mask=prompt_mask(37, 12), decoder_input_ids=_decoder_ids), head="ForSpeechToText", tables=True,
           vocab_size=61, hidden_size=48, feature_projection_input_dim=20, speech_encoder_layers=2, speech_encoder_attention_heads=4,
           speech_encoder_intermediate_size=100, adaptor_kernel_size=4, adaptor_stride=4, conv_depthwise_kernel_size=5, left_max_position_embeddings=6,
           right_max_position_embeddings=3, speech_encoder_chunk_size=9, speech_encoder_left_chunk_num=1, max_position_embeddings=64, tie_word_embeddings=False,
           **_SEAMLESS),
    Entry("stable_audio3", "audio", "diffusers:StableAudio3DiTModel",
          dict(io_channels=6, embed_dim=128, depth=2, num_heads=2, cond_token_dim=20, global_cond_dim=28, local_add_cond_dim=7, timestep_features_dim=16,
               ff_mult=2.0, num_memory_tokens=3),
          also(floats(hidden_states=(6, 37), encoder_hidden_states=(9, 20), global_hidden_states=(28,), local_add_cond=(7, 37)), timestep=times(0.713, 0.098),
               encoder_attention_mask=prompt_mask(9, 3))),
    Entry("mmaudio_vocoder", "audio", "diffusers:MMAudioVocoder",
          dict(num_mels=20, upsample_initial_channel=32, upsample_rates=(4, 3), upsample_kernel_sizes=(8, 7), resblock_kernel_sizes=(3, 5),
               resblock_dilation_sizes=((1, 3, 5), (1, 3, 5))), floats(mel=(20, 23))),
    Entry("autoencoder_same", "audio", "diffusers:AutoencoderSAME",
          dict(audio_channels=2, patch_size=4, encoder_channels=16, encoder_c_mults=(3,), encoder_strides=(4,), encoder_transformer_depths=(2,), latent_dim=12,
               dim_heads=24, ff_mult=2), floats(sample=(2, 144))),
]
