"""lucidrains' SegFormer."""
import torch
from segformer_pytorch import Segformer


def rename(name):
    return name.replace("norm.g", "norm.weight") if name.endswith("norm.g") else name.replace("norm.b", "norm.bias") if name.endswith("norm.b") else name


def build():
    model = Segformer(dims=(16, 24, 32, 48), heads=(1, 2, 4, 4), ff_expansion=(2, 2, 2, 2), reduction_ratio=(4, 2, 2, 1), num_layers=1, channels=3, decoder_dim=24, num_classes=3)
    return model, [{"x": torch.randn(2, 3, 64, 64)}]
