"""Stable Diffusion 2's Transformer2DModel, its projections linear."""
import torch
try:
    from diffusers.models.attention import Transformer2DModel
except ImportError:
    from diffusers.models.transformer_2d import Transformer2DModel


def build():
    model = Transformer2DModel(num_attention_heads=3, attention_head_dim=16, in_channels=48, num_layers=1, norm_num_groups=8, cross_attention_dim=24, use_linear_projection=True)
    return model, [{"hidden_states": 2 * torch.randn(2, 48, 5, 6) + 1, "encoder_hidden_states": torch.randn(2, 7, 24), "return_dict": False}]
