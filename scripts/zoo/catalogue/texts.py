"""What sets of text models share: sizes, a prompt with a second call, and makers of entries."""
from ..entry import Entry
from ..inputs import steps

WORDS = 61
IDS = dict(vocab_size=WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
SMALL = dict(vocab_size=WORDS, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
WIDE = dict(SMALL, hidden_size=104, intermediate_size=212)
STEPS = steps((37, 6), WORDS)


def text(name, stem, inputs, attention="sdpa", head="Model", tables=False, **config):
    return Entry(name, "language", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, tables=tables)


def decoder(name, stem, inputs=STEPS, attention="sdpa", head="ForCausalLM", tables=False, **config):
    """A prompt and a second call on its cache; or one call with `inputs`."""
    return Entry(name, "language", f"transformers:{stem}Config:{stem}{head}", {**IDS, **config}, inputs, attention, cached=inputs is STEPS, tables=tables)
