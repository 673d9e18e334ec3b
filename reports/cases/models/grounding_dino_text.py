"""Grounding DINO's text positions in a layer of its encoder."""
import torch
from transformers import GroundingDinoConfig
from transformers.models.grounding_dino.modeling_grounding_dino import GroundingDinoEncoderLayer


class Layer(torch.nn.Module):
    """The layer on fixed feature maps: 24 + 6 image tokens, 7 text tokens."""

    def __init__(self):
        super().__init__()
        config = GroundingDinoConfig(d_model=48, encoder_attention_heads=4, encoder_ffn_dim=64, encoder_layers=1, decoder_layers=1, num_feature_levels=2, encoder_n_points=2)
        config._attn_implementation = "eager"
        self.layer = GroundingDinoEncoderLayer(config)

    def forward(self, vision_features, text_features, text_position_ids):
        shapes = [(4, 6), (2, 3)]
        points = torch.rand(1, 30, 2, 2, generator=torch.Generator().manual_seed(1)).expand(len(vision_features), -1, -1, -1)
        return self.layer(vision_features=vision_features, vision_position_embedding=torch.zeros_like(vision_features), spatial_shapes=torch.tensor(shapes), spatial_shapes_list=shapes,
                          level_start_index=torch.tensor([0, 24]), key_padding_mask=torch.zeros(len(vision_features), 30, dtype=torch.bool), reference_points=points,
                          text_features=text_features, text_attention_mask=torch.zeros(len(text_features), 7, dtype=torch.bool),
                          text_self_attention_masks=torch.zeros(len(text_features), 7, 7, dtype=torch.bool), text_position_ids=text_position_ids)


def build():
    return Layer(), [{"vision_features": torch.randn(2, 30, 48), "text_features": torch.randn(2, 7, 48), "text_position_ids": torch.arange(7).repeat(2, 1)}]
