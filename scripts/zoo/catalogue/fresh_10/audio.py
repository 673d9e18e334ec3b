"""Models of sound and series: sources told apart by recurrence and attention over chunks, by strides; a vocoder with periodic activations, a convolution-augmented
transformer, dilated causal convolutions."""
import importlib

from ...entry import Entry
from ...inputs import floats


def _heard(name, model, config, inputs):
    return Entry(name, "audio", model, config, inputs)


def _vocoder():
    settings = importlib.import_module("bigvgan").env.AttrDict(
        num_mels=20, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], upsample_initial_channel=48, resblock="1", resblock_kernel_sizes=[3, 7],
        resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]], activation="snakebeta", snake_logscale=True, use_tanh_at_final=False, use_bias_at_final=False)
    return dict(h=settings, use_cuda_kernel=False)


ENTRIES = [
    _heard("dual_path_rnn", "asteroid.models:DPRNNTasNet", dict(n_src=2, bn_chan=28, hid_size=20, chunk_size=14, n_repeats=2, n_filters=44), floats(wav=(1, 600))),
    _heard("dual_path_transformer", "asteroid.models:DPTNet", dict(n_src=2, n_heads=4, ff_hid=52, chunk_size=14, n_repeats=2, n_filters=44), floats(wav=(1, 600))),
    _heard("sudormrf", "asteroid.models:SuDORMRFNet", dict(n_src=2, bn_chan=28, num_blocks=2, upsampling_depth=3, n_filters=44), floats(wav=(1, 640))),
    _heard("demucs_waves", "demucs.demucs:Demucs", dict(sources=["voice", "rest"], audio_channels=2, channels=12, depth=3, norm_starts=1, norm_groups=2, resample=False,
                                                      dconv_attn=2, dconv_lstm=3, rescale=0.0, normalize=True), floats(mix=(2, 680))),
    _heard("bigvgan_v", "bigvgan:BigVGAN", _vocoder, floats(x=(20, 23))),
    _heard("conformer_blocks", "conformer:Conformer", dict(dim=48, depth=2, dim_head=12, heads=4, conv_kernel_size=7), floats(x=(27, 48))),
    _heard("tcn", "pytorch_tcn:TCN", dict(num_inputs=20, num_channels=[28, 36, 28], kernel_size=3, dropout=0.0, causal=True, use_skip_connections=True), floats(x=(20, 41))),
]
