"""GPT-2 with scale_attn_by_inverse_layer_idx, attention by SDPA."""
import torch
from transformers import GPT2Config, GPT2Model


def build():
    config = GPT2Config(n_layer=3, n_embd=48, n_head=3, vocab_size=97, n_positions=32, scale_attn_by_inverse_layer_idx=True, attn_implementation="sdpa", use_cache=False)
    return GPT2Model(config), [{"input_ids": torch.randint(0, 97, (2, 13))}]
