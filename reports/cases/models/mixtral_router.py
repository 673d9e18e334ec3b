"""Mixtral, whose router's logits the load-balancing loss reads."""
import torch
from transformers import MixtralConfig, MixtralModel


def build():
    config = MixtralConfig(num_hidden_layers=2, hidden_size=48, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, vocab_size=97, num_local_experts=5,
                           max_position_embeddings=64, attn_implementation="eager", experts_implementation="eager", use_cache=False)
    return MixtralModel(config), [{"input_ids": torch.randint(3, 97, (2, 9))}]
