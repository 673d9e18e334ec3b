"""RT-DETR's hybrid encoder on feature maps that are not square."""
import torch
from transformers import RTDetrConfig
from transformers.models.rt_detr.modeling_rt_detr import RTDetrHybridEncoder


class Encoder(torch.nn.Module):
    """The encoder, its maps as three arguments: (2, 32, 8, 12), (2, 32, 4, 6) and (2, 32, 2, 3)."""

    def __init__(self):
        super().__init__()
        config = RTDetrConfig(encoder_hidden_dim=32, encoder_in_channels=[32, 32, 32], feat_strides=[8, 16, 32], encode_proj_layers=[2], encoder_layers=1,
                              encoder_attention_heads=4, encoder_ffn_dim=48, eval_size=None)
        config._attn_implementation = "eager"
        self.encoder = RTDetrHybridEncoder(config)

    def forward(self, fine, middle, coarse):
        return self.encoder([fine, middle, coarse])


def positions(width, height, embed_dim=256, temperature=10000.0, device="cpu", dtype=torch.float32):
    """(1, height * width, embed_dim): sines and cosines of y, then of x, rows first."""
    x = torch.arange(int(width), device=device).to(dtype)
    y = torch.arange(int(height), device=device).to(dtype)
    x, y = torch.meshgrid(x, y, indexing="xy")
    quarter = embed_dim // 4
    frequency = 1.0 / (temperature ** (torch.arange(quarter, device=device).to(dtype) / quarter))
    across, down = x.flatten()[..., None] @ frequency[None], y.flatten()[..., None] @ frequency[None]
    return torch.concat([down.sin(), down.cos(), across.sin(), across.cos()], dim=1)[None]


def patch():
    RTDetrHybridEncoder.build_2d_sincos_position_embedding = staticmethod(positions)


def build():
    return Encoder(), [{"fine": torch.randn(2, 32, 8, 12), "middle": torch.randn(2, 32, 4, 6), "coarse": torch.randn(2, 32, 2, 3)}]
