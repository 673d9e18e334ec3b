"""CogView4's transformer."""
import torch
from diffusers import CogView4Transformer2DModel


def build():
    model = CogView4Transformer2DModel(patch_size=2, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=3, text_embed_dim=24,
                                       time_embed_dim=40, condition_dim=16, pos_embed_max_size=16, sample_size=16)
    sizes = torch.tensor([[64.0, 48.0], [56.0, 64.0]])
    return model, [{"hidden_states": torch.randn(2, 4, 6, 8), "encoder_hidden_states": torch.randn(2, 7, 24), "timestep": torch.tensor([311, 702]), "original_size": sizes,
                    "target_size": sizes + 8, "crop_coords": torch.zeros(2, 2) + 3, "return_dict": False}]
