"""Encoders of text, and encoder-decoder models."""
from ..entry import Entry
from ..inputs import tokens

_V = 61
_SMALL = dict(vocab_size=_V, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100, max_position_embeddings=40)


def _encoder(name, config_stem, model, inputs=None, **config):
    return Entry(name, "language", f"transformers:{config_stem}Config:{model}", dict(_SMALL, **config), inputs or tokens(17, _V, pad=5))


ENTRIES = [
    _encoder("bert", "Bert", "BertModel"),
]
