"""Statistics of a torch tensor, wherever it lies: on the CPU by stats.py, on a GPU there, as fetching the values takes longer than the model did to compute them."""
import torch

from . import native, stats
from .torch_bits import dense_strides, dtype_name, shape, torch_bits, undisturbed

DEVICE_BLOCK = 1 << 24  # numbers on a GPU looked at at once, as float64: a few passes over 128 MB each


def describe(t, sums=None):
    """The event's description {"d", "s", "stats"} of a storable tensor; without "stats" where the elements are no numbers. `sums`: as for stats.of_bits."""
    name = dtype_name(t.dtype)
    found = (_in_place(t, name) if sums is None else None) or _found(t, name, sums)
    return {"d": name, "s": shape(t), **({"stats": found} if found is not None else {})}


def _in_place(t, name):
    """By the library, of elements that lie together on the CPU, in any order: nothing is asked of torch's dispatcher, which takes longer than a small tensor."""
    if t.device.type != "cpu" or t.is_neg() or not t.data_ptr() or not t.is_contiguous() and dense_strides(t) is None:
        return None
    return native.statistics_at(name, t.data_ptr(), t.numel())  # conjugation, too, is only marked: it changes no magnitude


def _found(t, name, sums):
    with undisturbed():
        flat = t.detach()
        if dense_strides(flat) is not None:  # the order does not matter: as the elements lie, without a copy
            flat = flat.as_strided((flat.numel(),), (1,))
        if t.device.type == "cuda" and not name.startswith("float4_"):
            return on_device(flat)
        found = stats.of_bits(*torch_bits(flat)[:2], sums)
        if found is None and name.startswith("float8_"):  # torch knows all of them
            found = stats.of_bits(*torch_bits(flat.to(torch.float32))[:2])
        return found


def on_device(t):
    """The JSON of a tensor's statistics, computed where it lies; autograd must be off."""
    flat = t.resolve_conj().resolve_neg().reshape(-1)
    return stats.together([_moments(piece) for piece in flat.split(DEVICE_BLOCK)] if flat.numel() else [])


def _moments(piece):
    if piece.is_complex():
        real, imaginary = torch.view_as_real(piece).double().unbind(-1)
        x = torch.hypot(real, imaginary)
    else:
        x = (piece.float() if piece.element_size() == 1 and piece.is_floating_point() else piece).double()
    count, finite = x.numel(), torch.isfinite(x)
    nan, n = int(torch.isnan(x).sum()), int(finite.sum())
    if n < count:
        x = x[finite]
    if not n:
        return stats.Moments(count, nan, count - nan)
    mean = (x / n).sum()
    apart = x - mean
    shift = apart.mean()  # what the mean was off by
    low, high = x.aminmax()
    found = torch.stack([(x == 0).sum(), mean + shift, (apart - shift).square().sum(), (x.abs() / n).sum(), low, high]).tolist()
    return stats.Moments(count, nan, count - nan - n, int(found[0]), *found[1:])
