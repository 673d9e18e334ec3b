"""Encoders of text, and encoder-decoder models."""
from ..entry import Entry
from ..inputs import sequence_pair, tokens

_V = 61
_SMALL = dict(vocab_size=_V, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, max_position_embeddings=40)
_WIDE = dict(_SMALL, hidden_size=104, intermediate_size=212)
_LONG = tokens(39, _V, pad=9)
_PAIR = dict(vocab_size=_V, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100,
             decoder_ffn_dim=92, max_position_embeddings=40, pad_token_id=1, decoder_start_token_id=2)


def _text(name, stem, model=None, inputs=None, base=_SMALL, attention="sdpa", **config):
    return Entry(name, "language", f"transformers:{stem}Config:{model or stem + 'Model'}", {**base, **config}, inputs or tokens(17, _V, pad=5),
                 attention=attention)


ENTRIES = [
    _text("bert", "Bert", inputs=_LONG, base=_WIDE),
    _text("roberta", "Roberta"),
    _text("distilbert", "DistilBert", attention="eager", base={}, vocab_size=_V, dim=48, n_layers=2, n_heads=4, hidden_dim=100, max_position_embeddings=40),
    _text("electra", "Electra", inputs=_LONG, base=_WIDE, attention="eager", embedding_size=32),
    _text("albert", "Albert", embedding_size=20, num_hidden_groups=1),
    _text("modernbert", "ModernBert", inputs=_LONG, base=_WIDE, tie_word_embeddings=False, global_attn_every_n_layers=2, local_attention=8,
          pad_token_id=0, reference_compile=False),
    _text("deberta_v2", "DebertaV2", attention="eager", relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm"),
    _text("t5", "T5", inputs=sequence_pair(17, 11, _V, pad=5), base={}, vocab_size=_V, d_model=48, d_kv=12, d_ff=100, num_layers=2, num_heads=4,
          relative_attention_num_buckets=8, relative_attention_max_distance=12, feed_forward_proj="gated-gelu"),
    _text("bart", "Bart", inputs=sequence_pair(39, 23, _V, pad=8), base=dict(_PAIR, d_model=104, decoder_ffn_dim=212)),
    _text("pegasus", "Pegasus", inputs=sequence_pair(39, 27, _V), base=dict(_PAIR, d_model=104, encoder_ffn_dim=212)),
]
