"""Models of images, volumes and fields: networks for medical volumes, a latent array that reads an image, columns that agree, an
operator in the frequency domain."""
import importlib

import torch

from ...entry import Entry
from ...inputs import floats


def _seen(name, model, config, inputs, **more):
    return Entry(name, "vision", model, config, inputs, **more)


def _efficientnet():
    utils = importlib.import_module("efficientnet_pytorch.utils")
    blocks = ["r1_k3_s11_e1_i32_o12_se0.25", "r2_k3_s22_e4_i12_o20_se0.25", "r2_k5_s22_e4_i20_o28_se0.25"]
    return dict(blocks_args=utils.BlockDecoder.decode(blocks),
                global_params=utils.GlobalParams(width_coefficient=0.5, depth_coefficient=1.0, image_size=48, dropout_rate=0.0, num_classes=29, batch_norm_momentum=0.99,
                                                 batch_norm_epsilon=1e-3, drop_connect_rate=0.0, depth_divisor=4, min_depth=None, include_top=True))


def _residual_encoder():
    nn = torch.nn
    return dict(input_channels=2, n_stages=3, features_per_stage=(12, 20, 28), conv_op=nn.Conv3d, kernel_sizes=3, strides=(1, 2, 2), n_blocks_per_stage=(1, 2, 1),
                num_classes=5, n_conv_per_stage_decoder=1, conv_bias=True, norm_op=nn.InstanceNorm3d, norm_op_kwargs=dict(eps=1e-5, affine=True), nonlin=nn.LeakyReLU,
                nonlin_kwargs=dict(inplace=True))


ENTRIES = [
    _seen("seg_resnet", "monai.networks.nets:SegResNet", dict(spatial_dims=3, init_filters=8, in_channels=2, out_channels=3, num_groups=4, blocks_down=(1, 2, 1),
                                                            blocks_up=(1, 1)), floats(x=(2, 12, 16, 20))),
    _seen("attention_unet", "monai.networks.nets:AttentionUnet", dict(spatial_dims=2, in_channels=3, out_channels=5, channels=(12, 20, 28), strides=(2, 2)),
          floats(x=(3, 40, 48))),
    _seen("highres_net", "monai.networks.nets:HighResNet",
          dict(spatial_dims=2, in_channels=3, out_channels=5, layer_params=({"name": "conv_0", "n_features": 12, "kernel_size": 3},
                                                                          {"name": "res_1", "n_features": 12, "kernels": (3, 3), "repeat": 2},
                                                                          {"name": "res_2", "n_features": 20, "kernels": (3, 3), "repeat": 2},
                                                                          {"name": "conv_1", "n_features": 28, "kernel_size": 1}, {"name": "conv_2", "kernel_size": 1})),
          floats(x=(3, 27, 31))),
    _seen("dense_net", "monai.networks.nets:DenseNet", dict(spatial_dims=2, in_channels=3, out_channels=29, init_features=20, growth_rate=12, block_config=(2, 3, 2)),
          floats(x=(3, 64, 72))),
    _seen("residual_encoder_unet", "dynamic_network_architectures.architectures.unet:ResidualEncoderUNet", _residual_encoder, floats(x=(2, 12, 16, 20)),
          dtypes=("fp32",)),
    _seen("efficientnet_b", "efficientnet_pytorch:EfficientNet", _efficientnet, floats(inputs=(3, 48, 48))),
    _seen("perceiver_latents", "perceiver_pytorch:Perceiver", dict(num_freq_bands=5, depth=2, max_freq=10.0, input_channels=3, num_latents=17, latent_dim=48, cross_heads=2,
                                                                 latent_heads=4, cross_dim_head=16, latent_dim_head=12, num_classes=29, self_per_cross_attn=2),
          floats(data=(13, 15, 3))),
    _seen("glom", "glom_pytorch:Glom", dict(dim=44, levels=3, image_size=24, patch_size=6), lambda seed: [{**floats(img=(3, 24, 24))(seed)[0], "iters": 3}],
          dtypes=("fp32",)),
    _seen("fourier_operator", "neuralop.models:FNO", dict(n_modes=(6, 5), in_channels=3, out_channels=2, hidden_channels=20, n_layers=2, norm="group_norm"),
          floats(x=(3, 18, 20)), dtypes=("fp32",)),
]
