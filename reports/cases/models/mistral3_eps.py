"""Mistral 3's projector of image features."""
import torch
from transformers import Mistral3Config
from transformers.models.mistral3.modeling_mistral3 import Mistral3MultiModalProjector


def build():
    config = Mistral3Config(vision_config={"model_type": "pixtral", "hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 96, "patch_size": 4, "image_size": 32},
                            text_config={"model_type": "mistral", "hidden_size": 40, "intermediate_size": 80, "num_hidden_layers": 1, "num_attention_heads": 4,
                                         "num_key_value_heads": 2, "vocab_size": 97, "rms_norm_eps": 1e-5}, spatial_merge_size=2)
    features = 0.02 * torch.randn(24, 48)
    return Mistral3MultiModalProjector(config), [{"image_features": features, "image_sizes": torch.tensor([[16, 24]])}]
