"""Denoisers and autoencoders: waves with a spectrogram beside, scores of a continuous time, U-Nets modulated by the time, windows of an image, a codebook of volumes."""
import importlib

import torch

from ...entry import Entry
from ...inputs import also, floats, times


def _made(name, model, config, inputs, **more):
    return Entry(name, "diffusion", model, config, inputs, **more)


def _wave():
    params = importlib.import_module("diffwave.params").AttrDict(residual_layers=4, residual_channels=28, dilation_cycle_length=2, n_mels=20, unconditional=False,
                                                               noise_schedule=[0.01 * (i + 1) for i in range(20)])
    return dict(params=params)


def _time_modulated():
    """A decoder whose norms take shift and scale from the time."""
    layers = importlib.import_module("x_transformers").Encoder
    return dict(dim_in=12, dim_out=12, max_seq_len=64,
                attn_layers=layers(dim=48, depth=2, heads=4, attn_dim_head=12, use_adaptive_layernorm=True, use_adaptive_layerscale=True, dim_condition=36, ff_glu=True))


ENTRIES = [
    _made("diffwave", "diffwave.model:DiffWave", _wave,
          also(floats(audio=(512,), spectrogram=(20, 2)), diffusion_step=lambda _seed: torch.tensor([3, 14])), dtypes=("fp32",)),
    _made("ncsnpp", "score_models:NCSNpp", dict(channels=2, dimensions=2, nf=16, ch_mult=(1, 2), num_res_blocks=1), also(floats(x=(2, 16, 16)), t=times(0.31, 0.72)),
          dtypes=("fp32",)),
    _made("ddpm_scores", "score_models:DDPM", dict(channels=2, dimensions=2, nf=32, ch_mult=(1, 2), num_res_blocks=1), also(floats(x=(2, 16, 16)), t=times(0.31, 0.72))),
    _made("azula_unet", "azula.nn.unet:UNet", dict(in_channels=3, out_channels=3, hid_channels=(20, 28), hid_blocks=(1, 2), mod_features=36),
          floats(x=(3, 16, 20), mod=(36,))),
    _made("uformer", "uformer_pytorch:Uformer", dict(dim=16, stages=2, num_blocks=1, window_size=8, dim_head=8, heads=2, time_emb=True),
          also(floats(x=(3, 32, 32)), time=times(31.0, 412.0)), dtypes=("fp32",)),
    _made("x_modulated", "x_transformers:ContinuousTransformerWrapper", _time_modulated, floats(x=(29, 12), condition=(36,))),
    _made("volume_codebook", "monai.networks.nets:VQVAE", dict(spatial_dims=3, in_channels=1, out_channels=1, channels=(12, 20), num_res_layers=1, num_res_channels=(12, 20),
                                                             downsample_parameters=((2, 4, 1, 1), (2, 4, 1, 1)), upsample_parameters=((2, 4, 1, 1, 0), (2, 4, 1, 1, 0)),
                                                             num_embeddings=29, embedding_dim=12), floats(images=(1, 16, 16, 20)), dtypes=("fp32",)),
]
