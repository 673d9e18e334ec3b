"""Models of sound: words from codes of sound, codes among words, speech with its speakers, sound among words, music (its condition, the codes of a frame)."""
import torch

from selftest_models.weights import integers

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask, tokens

_PART = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)


def _audio(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _made(name, model, config, inputs, batch=True):
    return Entry(name, "audio", f"diffusers:{model}", config, inputs, batch=batch)


def _coded(seed):
    """A word and three codes for each of 23 frames."""
    words, codes = tokens(23, 61)(seed)[0]["input_ids"], integers("codes", (BATCH, 23, 3), 32, seed)
    return [{"input_ids": torch.cat([words[..., None], codes], dim=-1), "attention_mask": prompt_mask(23, 6)(seed)}]


def _spoken(seed):
    """Five words, eleven and eight frames of sound (60) of three codes each, words."""
    call = tokens(29, 60, pad=5)(seed)[0]
    call["input_ids"][0, 5:16], call["input_ids"][1, 5:13] = 60, 60
    return [{**call, "audio_input_ids": integers("codes", (BATCH, 11, 3), 32, seed), "audio_input_ids_mask": prompt_mask(11, 3, torch.bool)(seed)}]


def _recognised(seed):
    """Three words, 26 and 19 places of sound (60), words of the answer; 200 and 141 frames in chunks of a hundred, thirteen places for each."""
    call = tokens(37, 60, pad=5, low=8)(seed)[0]
    call["input_ids"][0, 3:29], call["input_ids"][1, 3:22] = 60, 60
    return [{**call, **floats(input_features=(20, 200))(seed)[0], "feature_attention_mask": prompt_mask(200, 59)(seed)}]


ENTRIES = [
    _audio("kyutai_speech_to_text", "KyutaiSpeechToText", _coded, **_PART, vocab_size=61, codebook_vocab_size=33, hidden_size=48, ffn_dim=200,
           sliding_window=7, num_codebooks=3, audio_bos_token_id=32, audio_pad_token_id=157, pad_token_id=2, bos_token_id=60,
           codec_config=dict(_PART, model_type="mimi", hidden_size=24, num_filters=4, upsampling_ratios=[4, 3], head_dim=6, intermediate_size=40,
                             codebook_size=32, codebook_dim=12, vector_quantization_hidden_dimension=12, num_quantizers=3, upsample_groups=24,
                             sampling_rate=2400)),
    _audio("higgs_audio_v2", "HiggsAudioV2", _spoken, head="ForConditionalGeneration", batch=False, **_PART, vocab_size=64, hidden_size=48,
           intermediate_size=100, head_dim=12, num_codebooks=3, codebook_size=32, audio_token_id=60, audio_bos_token_id=61, audio_delay_token_id=62,
           audio_stream_bos_id=30, audio_stream_eos_id=31, pad_token_id=63, eos_token_id=2),
    Entry("nemotron3_5_transcribe", "audio", "transformers:Nemotron3_5TranscribeAudioConfig:Nemotron3_5TranscribeAudioModel",
          dict(asr_config=dict(hidden_size=48, intermediate_size=100, num_hidden_layers=2, num_attention_heads=4, num_mel_bins=20, subsampling_factor=4,
                               max_position_embeddings=64),
               diarization_config=dict(
                   audio_config=dict(hidden_size=40, num_hidden_layers=2, num_attention_heads=4, intermediate_size=92, num_mel_bins=20,
                                     subsampling_factor=4, max_position_embeddings=64),
                   head_config=dict(hidden_size=28, num_speakers=3, audio_hidden_size=40, subsampling_factor=4),
                   streaming_config=dict(fifo_length=6, speaker_cache_update_period=5, speaker_cache_length=9, num_speakers=3, subsampling_factor=4),
                   chunk_length=9, chunk_right_context=3, chunk_left_context=2, fifo_length=4, speaker_cache_update_period=5)),
          also(floats(input_features=(104, 20)), input_features_mask=prompt_mask(104, 24)), "sdpa", batch=False),
    Entry("qwen3_omni_moe", "audio", "transformers:Qwen3OmniMoeThinkerConfig:Qwen3OmniMoeThinkerForConditionalGeneration",
          dict(audio_token_id=60, image_token_id=5, video_token_id=6, audio_start_token_id=7, vision_start_token_id=4, experts_implementation="eager",
               audio_config=dict(num_mel_bins=20, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=100, d_model=48, n_window=50,
                                 n_window_infer=100, output_dim=48, downsample_hidden_size=12, max_source_positions=13),
               vision_config=dict(depth=1, hidden_size=40, intermediate_size=92, num_heads=4, patch_size=6, out_hidden_size=48, num_position_embeddings=36,
                                  deepstack_visual_indexes=[0]),
               text_config=dict(_PART, vocab_size=61, hidden_size=48, intermediate_size=100, moe_intermediate_size=36, num_experts=5, num_experts_per_tok=2,
                                rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2]))),
          _recognised, "eager", batch=False),
    _made("ace_step_condition", "AceStepConditionEncoder",
          dict(hidden_size=48, intermediate_size=100, text_hidden_dim=20, timbre_hidden_dim=12, num_lyric_encoder_hidden_layers=3,
               num_timbre_encoder_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12, sliding_window=7),
          also(floats(text_hidden_states=(11, 20), lyric_hidden_states=(23, 20), refer_audio_acoustic_hidden_states_packed=(17, 12)),
               text_attention_mask=prompt_mask(11, 3), lyric_attention_mask=prompt_mask(23, 6), refer_audio_order_mask=torch.tensor([0, 1])), batch=False),
    _made("minimax_music3_depth", "MiniMaxMusic3RVQDepthDecoder",
          dict(hidden_size=48, num_layers=3, num_attention_heads=4, intermediate_size=100, audio_vocab_size=32, num_codebooks=4),
          floats(inputs_embeds=(7, 48))),
]
