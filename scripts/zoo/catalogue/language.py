"""Decoders."""
from ..entry import Entry
from ..inputs import steps

_V = 61
_SMALL = dict(vocab_size=_V, num_hidden_layers=2, max_position_embeddings=64)


def _decoder(name, stem, attention="sdpa", cached=True, lengths=(13, 4), **config):
    return Entry(name, "language", f"transformers:{stem}Config:{stem}ForCausalLM", dict(_SMALL, **config), steps(lengths, _V),
                 attention=attention, cached=cached)


_GATED = dict(hidden_size=48, intermediate_size=100, num_attention_heads=4, num_key_value_heads=2)
ENTRIES = [
    _decoder("llama", "Llama", **_GATED),
]
