"""Models of sound."""
from ..entry import Entry
from ..inputs import floats

_CONV = dict(conv_dim=(24, 24, 24), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_feat_extract_layers=3)
_SPEECH = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
               vocab_size=32, **_CONV)

ENTRIES = [
    Entry("wav2vec2", "audio", "transformers:Wav2Vec2Config:Wav2Vec2Model", dict(_SPEECH, apply_spec_augment=False), floats(input_values=(621,))),
]
