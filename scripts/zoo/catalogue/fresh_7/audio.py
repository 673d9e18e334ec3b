"""Models of sound: words about sound, words as the sound arrives, sound in chunks, music by flow, an autoencoder of sound."""
import torch

from ...entry import Entry
from ...inputs import also, floats, prompt_mask, tokens
from ..denoisers import FLOW_TIMES

_PART = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)


def _audio(name, stem, inputs, attention="sdpa", head="Model", batch=True, **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _made(name, model, config, inputs):
    return Entry(name, "audio", f"diffusers:{model}", config, inputs)


def _heard(seed):
    """Three words, twelve and nine places of sound (60), words of the answer; 19 frames are three places for each six of them."""
    call = tokens(29, 60, pad=5)(seed)[0]
    call["input_ids"][0, 3:15], call["input_ids"][1, 3:12] = 60, 60
    return [{**call, **floats(input_features=(19, 20))(seed)[0], "input_features_mask": prompt_mask(12, 3, torch.bool)(seed)}]


def _recognised(seed):
    """Three words, 26 and 19 places of sound (60), words of the answer; 200 and 141 frames in chunks of a hundred, thirteen places for each."""
    call = tokens(37, 60, pad=5)(seed)[0]
    call["input_ids"][0, 3:29], call["input_ids"][1, 3:22] = 60, 60
    return [{**call, **floats(input_features=(20, 200))(seed)[0], "input_features_mask": prompt_mask(200, 59)(seed)}]


ENTRIES = [
    _audio("granite_speech", "GraniteSpeech", _heard, head="ForConditionalGeneration", batch=False, audio_token_index=60, has_lora_adapter=False,
           downsample_rate=2, window_size=6,
           encoder_config=dict(input_dim=20, num_layers=4, hidden_dim=48, feedforward_mult=2, num_heads=4, output_dim=31, context_size=8, max_pos_emb=16,
                               conv_kernel_size=5),
           projector_config=dict(model_type="blip_2_qformer", hidden_size=40, num_hidden_layers=2, num_attention_heads=4, intermediate_size=92,
                                 encoder_hidden_size=48, cross_attention_frequency=1),
           text_config=dict(_PART, model_type="granite", vocab_size=61, hidden_size=48, intermediate_size=100, residual_multiplier=0.8,
                            embedding_multiplier=1.3, logits_scaling=1.5, attention_multiplier=0.3)),
    _audio("voxtral_realtime", "VoxtralRealtime", also(tokens(15, 61), input_features=lambda seed: floats(mel=(20, 120))(seed)[0]["mel"], num_delay_tokens=3),
           head="ForConditionalGeneration", audio_length_per_tok=8, default_num_delay_tokens=3, downsample_factor=4,
           audio_config=dict(hidden_size=48, intermediate_size=100, num_hidden_layers=2, num_attention_heads=4, num_mel_bins=20, max_position_embeddings=128,
                             sliding_window=11, head_dim=12),
           text_config=dict(_PART, vocab_size=61, hidden_size=48, intermediate_size=100, sliding_window=7)),
    _audio("qwen3_asr", "Qwen3ASR", _recognised, head="ForConditionalGeneration", batch=False, audio_token_id=60, pad_token_id=0, eos_token_id=2,
           audio_config=dict(num_mel_bins=20, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=100, d_model=48, n_window=50, n_window_infer=100,
                             output_dim=48, downsample_hidden_size=12, max_position_embeddings=13),
           text_config=dict(_PART, model_type="qwen2", vocab_size=61, hidden_size=48, intermediate_size=100)),
    _made("minimax_music3", "MiniMaxMusic3Transformer1DModel",
          dict(in_channels=6, condition_dim=20, num_layers=3, num_attention_heads=4, attention_head_dim=24, ff_inner_dim=196, rotary_dim=12,
               fourier_embedding_dim=32),
          also(floats(hidden_states=(6, 37), encoder_hidden_states=(37, 20)), timestep=FLOW_TIMES)),
    _made("autoencoder_kvae_audio", "AutoencoderKLKVAEAudio",
          dict(encoder_dim=8, encoder_rates=[2, 4, 3], latent_dim=48, codebook_dim=12, decoder_dim=64, decoder_rates=[3, 4, 2], sample_rate=2400,
               num_channels=2, attn_num_heads=4), floats(sample=(2, 251))),
]
