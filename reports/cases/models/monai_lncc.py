"""MONAI's local normalised cross correlation with a Gaussian window."""
import torch
from monai.losses import LocalNormalizedCrossCorrelationLoss


def build():
    loss = LocalNormalizedCrossCorrelationLoss(spatial_dims=2, kernel_size=5, kernel_type="gaussian")
    return loss, [{"pred": torch.rand(2, 1, 13, 11), "target": torch.rand(2, 1, 13, 11)}]
