"""OPT, attention by SDPA."""
import torch
from transformers import OPTConfig, OPTModel


def build():
    config = OPTConfig(num_hidden_layers=2, hidden_size=48, ffn_dim=96, num_attention_heads=3, vocab_size=97, max_position_embeddings=32, word_embed_proj_dim=48,
                       attn_implementation="sdpa", use_cache=False)
    return OPTModel(config), [{"input_ids": torch.randint(3, 97, (2, 13))}]
