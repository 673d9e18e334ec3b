"""SmolVLM's vision tower on an image of 7 x 7 patches, the whole grid."""
import torch
from transformers.models.smolvlm.configuration_smolvlm import SmolVLMVisionConfig
from transformers.models.smolvlm.modeling_smolvlm import SmolVLMVisionTransformer


def build():
    config = SmolVLMVisionConfig(hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=3, image_size=56, patch_size=8)
    config._attn_implementation = "eager"
    pixels = torch.randn(2, 3, 56, 56)
    return SmolVLMVisionTransformer(config), [{"pixel_values": pixels, "patch_attention_mask": torch.ones(2, 7, 7, dtype=torch.bool)}]
