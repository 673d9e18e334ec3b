"""Models of sound: words about sound, two streams of codes beside words, a transducer with a limited view ahead, who speaks when, a conformer in blocks."""
from selftest_models.weights import integers

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask, tokens

_PART = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)


def _audio(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _numbers(name, most, *shape, low=0):
    return lambda seed: low + integers(name, (BATCH, *shape), most - low, seed)


def _frames(time, pad, bins=20):
    return also(floats(input_features=(time, bins)), attention_mask=prompt_mask(time, pad))


def _heard(seed):
    """Three words, seventeen and twelve frames of sound (60), words of the answer."""
    call = tokens(29, 60, pad=5)(seed)[0]
    call["input_ids"][0, 3:20], call["input_ids"][1, 3:15] = 60, 60
    return [{**call, **floats(input_features=(17, 24))(seed)[0], "input_features_mask": prompt_mask(17, 5)(seed)}]


ENTRIES = [
    _audio("fun_asr_nano", "FunAsrNano", _heard, head="ForConditionalGeneration", batch=False, audio_token_id=60,
           audio_config=dict(num_mel_bins=8, num_stacked_frames=3, hidden_size=48, num_attention_heads=4, intermediate_size=100, num_hidden_layers=3,
                             num_timestamp_prediction_layers=1, fsmn_kernel_size=5, max_position_embeddings=64),
           adaptor_config=dict(hidden_size=48, num_attention_heads=4, intermediate_size=12, num_hidden_layers=1, projector_hidden_size=72),
           text_config=dict(_PART, model_type="qwen2", vocab_size=61, hidden_size=48, intermediate_size=100)),
    _audio("moshi", "Moshi",
           also(tokens(10, 61), user_input_values=lambda seed: floats(user=(1, 240))(seed)[0]["user"],
                moshi_input_values=lambda seed: floats(moshi=(1, 240))(seed)[0]["moshi"],
                text_labels=_numbers("text labels", 61, 10, low=3), audio_labels=_numbers("audio labels", 32, 3, 10)),
           head="ForConditionalGeneration", batch=False, **_PART, vocab_size=61, hidden_size=48, ffn_dim=200, sliding_window=7, num_codebooks=3,
           audio_encoder_config=dict(_PART, model_type="mimi", hidden_size=24, num_filters=4, upsampling_ratios=[4, 3], head_dim=6, intermediate_size=40,
                                     codebook_size=32, codebook_dim=12, vector_quantization_hidden_dimension=12, num_quantizers=4, upsample_groups=24,
                                     sampling_rate=2400),
           depth_decoder_config=dict(hidden_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, ffn_dim=92, sliding_window=3)),
    _audio("nemotron_asr_streaming", "NemotronAsrStreaming",
           also(_frames(103, 24), decoder_input_ids=_numbers("words", 30, 1), num_lookahead_tokens=2), head="ForRNNT", vocab_size=31, blank_token_id=30,
           decoder_hidden_size=40, encoder_config=dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, conv_kernel_size=5,
                                                       subsampling_factor=4, subsampling_conv_channels=24, num_mel_bins=20, sliding_window=7,
                                                       max_position_embeddings=64)),
    _audio("nemotron3_diarization", "Nemotron3Diarization", _frames(103, 24), head="ForAudioFrameClassification",
           audio_config=dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, num_mel_bins=20, subsampling_factor=4,
                             max_position_embeddings=64),
           head_config=dict(hidden_size=28, num_speakers=3, audio_hidden_size=48, subsampling_factor=4),
           streaming_config=dict(fifo_length=6, speaker_cache_update_period=5, speaker_cache_length=9, num_speakers=3, subsampling_factor=4),
           chunk_length=9, chunk_right_context=3, chunk_left_context=2, fifo_length=4, speaker_cache_update_period=5),
    Entry("granite_speech5", "audio", "transformers:GraniteSpeech5CTCConfig:GraniteSpeech5ForCTC",
          dict(vocab_size=31, encoder_config=dict(vocab_size=31, hidden_size=48, intermediate_size=100, num_hidden_layers=4, num_attention_heads=4,
                                                  num_mel_bins=20, context_size=8, conv_kernel_size=5, max_position_embeddings=64)),
          _frames(51, 12, 80)),
]
