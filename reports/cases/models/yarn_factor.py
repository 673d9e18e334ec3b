"""Qwen2 with YaRN, its factor given."""
import torch
from transformers import Qwen2Config, Qwen2Model


def build():
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    config = Qwen2Config(num_hidden_layers=2, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, vocab_size=97, max_position_embeddings=64,
                         rope_scaling=scaling, attn_implementation="eager", use_cache=False)
    return Qwen2Model(config), [{"input_ids": torch.randint(3, 97, (2, 40))}]
