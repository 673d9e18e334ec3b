"""Models of sound and series: a codec with codebooks at several rates, sources told apart in spectrograms and in waves, a series' variates as tokens."""
from ...entry import Entry
from ...inputs import floats


def _heard(name, model, config, inputs, **more):
    return Entry(name, "audio", model, config, inputs, **more)


ENTRIES = [
    _heard("rates_codec", "snac:SNAC", dict(sampling_rate=800, encoder_dim=16, encoder_rates=[2, 3], decoder_dim=64, decoder_rates=[3, 2], attn_window_size=8,
                                          codebook_size=37, codebook_dim=5, vq_strides=[4, 2, 1], noise=False), floats(audio_data=(1, 384)), dtypes=("fp32",)),
    _heard("hybrid_demucs", "demucs.hdemucs:HDemucs", dict(sources=["voice", "rest"], audio_channels=2, channels=12, nfft=256, depth=4, norm_starts=2, norm_groups=2,
                                                         dconv_lstm=3, dconv_attn=3, rescale=0.0), floats(mix=(2, 4096)), dtypes=("fp32",)),
    _heard("dilated_masks", "asteroid.models:ConvTasNet", dict(n_src=2, n_blocks=3, n_repeats=2, bn_chan=28, hid_chan=44, skip_chan=28, n_filters=44),
           floats(wav=(1, 600)), dtypes=("fp32",)),
    _heard("variates_as_tokens", "iTransformer:iTransformer", dict(num_variates=9, lookback_len=24, depth=2, dim=48, dim_head=12, heads=4, pred_length=(6, 12)),
           floats(x=(24, 9))),
]
