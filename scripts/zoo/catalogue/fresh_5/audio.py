"""Models of sound: codecs, a speech model of codes in two stacks, contrastive encoders, a conformer."""
import torch

from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask

_PART = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
_TOWER = dict(vocab_size=61, hidden_size=80, intermediate_size=100, projection_dim=40, num_hidden_layers=2, num_attention_heads=2)


def _audio(name, stem, inputs, attention="eager", head="Model", batch=True, **config):
    return Entry(name, "audio", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _spoken(seed):
    """Five words, ten and seven frames of sound (59), the end (60): (2, 16) ids; of the sound (2, 1, 240) samples, one frame for 24."""
    ids = 3 + integers("ids", (BATCH, 16), 50, seed)
    ids[0, 5:15], ids[1, 5:12], ids[0, 15], ids[1, 12], ids[1, 13:] = 59, 59, 60, 60, 57
    return [{"input_ids": ids, "attention_mask": prompt_mask(16, 3)(seed), "input_values": normal("sound", (BATCH, 1, 240), seed),
             "input_values_cutoffs": torch.tensor([[240], [168]]), "labels": torch.where(ids > 58, ids, -100)}]


def _words(length, pad):
    """Ids of text, filled up with 0, and their mask."""
    def make(seed):
        mask = prompt_mask(length, pad)(seed)
        return [{"input_ids": (3 + integers("ids", (BATCH, length), 56, seed)) * mask, "attention_mask": mask,
                 "input_features": normal("mel", (BATCH, 20, 33), seed)}]
    return make


ENTRIES = [
    _audio("csm", "Csm", _spoken, "sdpa", "ForConditionalGeneration", batch=False, **_PART, num_codebooks=3, vocab_size=32, text_vocab_size=61, hidden_size=48,
           intermediate_size=100, pad_token_id=57, codebook_pad_token_id=31, bos_token_id=58, audio_token_id=59, audio_eos_token_id=60,
           depth_decoder_config=dict(_PART, num_codebooks=3, backbone_hidden_size=48, vocab_size=32, hidden_size=40, intermediate_size=92),
           codec_config=dict(_PART, model_type="mimi", hidden_size=24, num_filters=4, upsampling_ratios=[4, 3], head_dim=6, intermediate_size=40,
                             codebook_size=32, codebook_dim=12, vector_quantization_hidden_dimension=12, num_quantizers=3, upsample_groups=24,
                             sampling_rate=2400)),
    _audio("xcodec", "Xcodec", floats(input_values=(1, 500)), target_bandwidths=[0.5, 1.5], sample_rate=2400, codebook_size=16,
           acoustic_model_config=dict(model_type="dac", encoder_hidden_size=8, downsampling_ratios=[5, 2, 2], decoder_hidden_size=32,
                                      upsampling_ratios=[5, 2, 2], hidden_size=24),
           semantic_model_config=dict(model_type="hubert", hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100,
                                      conv_dim=[24, 24, 24], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 2], num_feat_extract_layers=3,
                                      num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4)),
    _audio("clvp", "Clvp", _words(17, 5), head="ModelForConditionalGeneration", batch=False,
           text_config=dict(_TOWER, bos_token_id=59, eos_token_id=60, use_attention_bias=True), speech_config=dict(_TOWER, vocab_size=32),
           decoder_config=dict(vocab_size=32, max_position_embeddings=64, max_text_tokens=40, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                               num_mel_attn_blocks=2, feature_size=20, bos_token_id=30, eos_token_id=31, decoder_fixing_codes=[8, 4, 4, 24])),
    Entry("pe_audio", "audio", "transformers:PeAudioEncoderConfig:PeAudioEncoder",
          dict(_PART, hidden_size=48, intermediate_size=100, head_dim=12,
               dac_config=dict(model_type="dac", encoder_hidden_size=8, downsampling_ratios=[2, 4], codebook_dim=12)),
          also(floats(input_values=(1, 248)), padding_mask=prompt_mask(248, 64))),
    Entry("lasr", "audio", "transformers:LasrCTCConfig:LasrForCTC",
          dict(vocab_size=31, encoder_config=dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, conv_kernel_size=8,
                                                  subsampling_conv_channels=24, num_mel_bins=20, max_position_embeddings=64)),
          also(floats(input_features=(103, 20)), attention_mask=prompt_mask(103, 24)), "sdpa"),
]
