"""OLMo 2 in bf16."""
import torch
from transformers import Olmo2Config, Olmo2Model


def build():
    config = Olmo2Config(num_hidden_layers=2, hidden_size=48, intermediate_size=96, num_attention_heads=3, num_key_value_heads=3, vocab_size=97,
                         max_position_embeddings=64, attn_implementation="eager", use_cache=False)
    return Olmo2Model(config).to(torch.bfloat16), [{"input_ids": torch.randint(3, 97, (2, 29))}]
