"""MiniMax-M2 whose config says rotary_dim, as its checkpoints do: half of each head is rotated."""
import torch
from transformers import MiniMaxM2Config, MiniMaxM2Model


def build():
    config = MiniMaxM2Config(num_hidden_layers=1, hidden_size=48, intermediate_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=16, rotary_dim=8, vocab_size=97,
                             num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64, attn_implementation="eager", experts_implementation="eager", use_cache=False)
    return MiniMaxM2Model(config), [{"input_ids": torch.randint(3, 97, (2, 11))}]
