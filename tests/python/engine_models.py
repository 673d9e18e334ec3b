"""Small models of the architectures that engines run, with weights that make every part matter, and their references."""
import numpy as np
import torch
import transformers

import parity_probe

TOKENS = np.random.RandomState(7).randint(0, 96, 24).tolist()
COMMON = dict(vocab_size=96, hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=128, attn_implementation="eager")
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
WINDOW = ["sliding_attention"] * 3 + ["full_attention"]
MODELS = {
    "llama": ("Llama", dict(COMMON, tie_word_embeddings=False)),
    "llama3": ("Llama", dict(COMMON, tie_word_embeddings=True, rope_parameters=LLAMA3_ROPE)),
    "qwen2": ("Qwen2", dict(COMMON, tie_word_embeddings=True)),
    "qwen3": ("Qwen3", dict(COMMON, tie_word_embeddings=False, head_dim=32)),
    "gpt2": ("GPT2", dict(vocab_size=96, n_embd=64, n_layer=3, n_head=4, n_positions=128, attn_implementation="eager")),
    "olmo3": ("Olmo3", dict(COMMON, num_hidden_layers=4, num_key_value_heads=4, tie_word_embeddings=False, sliding_window=8, layer_types=WINDOW)),
}


def model(name):
    """A transformers model of that kind: the same weights each time, norms that are not one, biases that are not zero."""
    kind, settings = MODELS[name]
    config = getattr(transformers, kind + "Config")(**settings)
    cls = getattr(transformers, "GPT2LMHeadModel" if kind == "GPT2" else kind + "ForCausalLM")
    torch.manual_seed(0)
    made = cls(config).eval()
    with torch.no_grad():
        for parameter, value in made.named_parameters():
            value.add_(torch.randn_like(value) * (0.2 if value.dim() == 1 else 0.08))
    return made


def reference(made, path):
    """Records the model on TOKENS; returns its logits (tokens, vocabulary)."""
    with torch.no_grad(), parity_probe.record(made, path):
        return made(torch.tensor([TOKENS]), use_cache=False).logits[0].numpy()
