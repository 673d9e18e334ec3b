"""Tables of positions, known by what they hold. A model may keep one in its state dict (register_buffer without persistent=False: diffusers' SinusoidalPositionalEmbedding,
rotary frequencies of older checkpoints); another implementation computes it all the same."""
import torch

_FEW = 8   # numbers: fewer could be anything


def is_table(t):
    """Is the buffer `t` sines and cosines of places times frequencies, a place a row from 0 on, or such frequencies, from 1 down by one ratio? What is trained is neither."""
    if isinstance(t, torch.nn.Parameter) or not t.is_floating_point() or t.layout is not torch.strided or t.is_meta or t.numel() < _FEW:
        return False
    return _frequencies(t.double()) if t.dim() == 1 else _sines(t.reshape(-1, t.shape[-1]))


def _sines(rows):
    at_zero, at_one = rows[0] == 0, rows[0] == 1   # sines and cosines of place 0
    if not ((at_zero | at_one).all() and at_zero.any() and at_one.any()):
        return False
    rows = rows.double()   # eight-bit floats have no maximum
    return bool(rows.abs().max() <= 1 and not ((rows == 0) | (rows == 1)).all())


def _frequencies(t):
    ratio = t[1:] / t[:-1]
    return bool(t[0] == 1 and ratio.min() > 0 and ratio.max() < 1 and ratio.max() - ratio.min() < ratio.mean() / 32)   # half widths keep eight bits
