"""Mistral with a sliding window shorter than the prompt, attention written out."""
import torch
from transformers import MistralConfig, MistralModel


def build():
    config = MistralConfig(num_hidden_layers=2, hidden_size=48, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, vocab_size=97, sliding_window=5,
                           max_position_embeddings=64, attn_implementation="eager", use_cache=False)
    return MistralModel(config), [{"input_ids": torch.randint(3, 97, (2, 17))}]
