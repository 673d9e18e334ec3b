"""x-transformers' attention with normalised queries and keys and a learned scale for each dimension."""
import torch
from x_transformers.x_transformers import Attention


def build():
    return Attention(dim=48, heads=3, dim_head=16, qk_norm=True, qk_norm_dim_scale=True), [{"x": torch.randn(2, 9, 48)}]
