"""Models of sound."""
import torch

from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask, times, tokens


def _audio(name, stem, inputs, attention="eager", head="Model", **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention)


def _codes(length, channels):
    return lambda seed: integers("codes", (BATCH, length, channels), 29, seed)


ENTRIES = [
    Entry("clap", "audio", "transformers:ClapConfig:ClapModel",
          dict(projection_dim=40,
               text_config=dict(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, max_position_embeddings=40,
                                projection_dim=40),
               audio_config=dict(window_size=4, num_mel_bins=16, spec_size=32, patch_size=2, patch_stride=[2, 2], num_classes=7, hidden_size=48, depths=[2, 2],
                                 num_attention_heads=[2, 4], patch_embeds_hidden_size=24, num_hidden_layers=2, mlp_ratio=2.0, projection_dim=40)),
          also(tokens(13, 61, pad=4), input_features=lambda seed: normal("mel", (BATCH, 1, 64, 16), seed)), "eager", batch=False),
    _audio("dia", "Dia", also(tokens(21, 61, pad=6), decoder_input_ids=_codes(13, 3)), head="ForConditionalGeneration", pad_token_id=30, eos_token_id=29,
           bos_token_id=31, delay_pattern=[0, 2, 3],
           encoder_config=dict(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, head_dim=12, intermediate_size=100,
                               max_position_embeddings=64),
           decoder_config=dict(vocab_size=32, hidden_size=56, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=14, intermediate_size=92,
                               cross_num_attention_heads=4, cross_head_dim=12, cross_num_key_value_heads=4, cross_hidden_size=48, num_channels=3,
                               max_position_embeddings=64, pad_token_id=30, eos_token_id=29, bos_token_id=31)),
    Entry("musicgen", "audio", "transformers:MusicgenDecoderConfig:MusicgenForCausalLM",
          dict(vocab_size=29, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, ffn_dim=100, num_codebooks=3, max_position_embeddings=64, pad_token_id=29,
               bos_token_id=29),
          also(floats(encoder_hidden_states=(9, 48)), encoder_attention_mask=prompt_mask(9, 3),
               input_ids=lambda seed: integers("codes", (BATCH * 3, 19), 29, seed)), batch=False, tables=True),
    _audio("vibevoice_acoustic_tokenizer", "VibeVoiceAcousticTokenizer", also(floats(input_values=(1, 333)), sample=lambda _s: False), hidden_size=20, num_filters=8,
           downsampling_ratios=[2, 3, 4], depths=[1, 1, 1, 2], ffn_expansion=2),
    Entry("longcat_audio_dit", "audio", "diffusers:LongCatAudioDiTTransformer",
          dict(dit_dim=96, dit_depth=2, dit_heads=4, dit_text_dim=20, latent_dim=12, ff_mult=2.0),
          also(floats(hidden_states=(37, 12), encoder_hidden_states=(9, 20), latent_cond=(37, 12)), encoder_attention_mask=prompt_mask(9, 3, torch.bool),
               attention_mask=prompt_mask(37, 8, torch.bool), timestep=times(0.713, 0.098))),
    Entry("minimax_music3_vocoder", "audio", "diffusers:MiniMaxMusic3Vocoder",
          dict(latent_channels=20, decoder_input_dim=24, decoder_hidden_dim=32, upsampling_ratios=(4, 3, 2)), floats(latents=(20, 17))),
]
