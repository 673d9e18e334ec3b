"""Mistakes inside attention: mask, scale, softmax axis, heads, rotation, cache."""
import sys

import torch
from transformers import DynamicCache

from ..places import attentions, callers
from ..within import attend, on_attention, swap_global, within
from .operator import Operator, at, only


def _mask(a):
    """The call's mask as a tensor, or None."""
    if a["is_causal"]:
        return torch.ones(a["query"].shape[-2], a["key"].shape[-2], dtype=torch.bool).tril()
    return a["attn_mask"]


def _no_mask(a):
    return None if _mask(a) is None else {**a, "attn_mask": None, "is_causal": False}


def _next_seen(a):
    """Each query sees one key more (the mask laid one key too far)."""
    mask = _mask(a)
    if mask is None or mask.shape[-1] < 2:
        return None
    later = torch.cat([mask[..., 1:], mask[..., -1:]], -1)
    return {**a, "attn_mask": later, "is_causal": False}


def _scale(factor):
    def change(a):
        return {**a, "scale": (a["scale"] or a["query"].shape[-1] ** -0.5) * factor}
    return change


def _unscaled(a):
    return {**a, "scale": 1.0}


def _softmax_over_queries(a):
    q, k, v = a["query"], a["key"], a["value"]
    repeat = q.shape[-3] // k.shape[-3]
    k, v = k.repeat_interleave(repeat, -3), v.repeat_interleave(repeat, -3)
    scores = q.float() @ k.float().transpose(-1, -2) * (a["scale"] or q.shape[-1] ** -0.5)
    mask = _mask(a)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30) if mask.dtype == torch.bool else scores + mask.float()
    return (scores.softmax(-2) @ v.float()).to(q.dtype)


def _joined_wrong(a):
    """Heads joined in reverse order."""
    return attend(a).flip(-3) if a["query"].shape[-3] > 1 else None


def _tiled(a):
    """Key and value heads repeated as a whole instead of one by one."""
    repeat = a["query"].shape[-3] // a["key"].shape[-3]
    if repeat < 2 or a["key"].shape[-3] < 2:
        return None
    return {**a, "key": a["key"].repeat(1, repeat, 1, 1), "value": a["value"].repeat(1, repeat, 1, 1), "enable_gqa": False}


def _inside(change):
    return at(lambda m, patch: within(m, patch, on_attention(change)))


def _all(model):
    """Attention may be computed by a processor or interface: in the code of any module that has submodules."""
    return only(attentions(model)) or [p for p, _m in callers(model) if p]


def _rotation(model):
    return [p for p in only(attentions(model)) if hasattr(sys.modules[type(model.get_submodule(p)).__module__], "apply_rotary_pos_emb")]


def _turned_back(m, patch):
    right = sys.modules[type(m).__module__].apply_rotary_pos_emb
    swap_global(m, patch, "apply_rotary_pos_emb", lambda q, k, cos, sin, *args, **kwargs: right(q, k, cos, -sin, *args, **kwargs))


def _wide_rotation(m, patch):
    right = sys.modules[type(m).__module__].apply_rotary_pos_emb

    def wide(q, k, cos, sin, *args, **kwargs):
        a, b = right(q.float(), k.float(), cos.float(), sin.float(), *args, **kwargs)
        return a.to(q.dtype), b.to(k.dtype)
    swap_global(m, patch, "apply_rotary_pos_emb", wide)


def _no_rotation(m, patch):
    swap_global(m, patch, "apply_rotary_pos_emb", lambda q, k, *args, **kwargs: (q, k))


def _by_halves(model):
    """Where `rotate_half` turns channels i and i + n / 2 of a head together, not neighbours."""
    turns = {p: getattr(sys.modules[type(model.get_submodule(p)).__module__], "rotate_half", None) for p in _rotation(model)}
    four = torch.arange(1., 5.)
    return [p for p, turned in turns.items() if turned and torch.equal(turned(four), torch.tensor([-3., -4., 1., 2.]))]


def _neighbours_turned(m, patch):
    right = sys.modules[type(m).__module__].apply_rotary_pos_emb

    def reordered(x, parts, width):  # of the channels that are turned
        turned, rest = x[..., :width], x[..., width:]
        return torch.cat([turned.unflatten(-1, parts).transpose(-1, -2).flatten(-2), rest], -1)

    def by_neighbours(q, k, cos, *args, **kwargs):
        width = cos.shape[-1]
        turned = right(*(reordered(x, (-1, 2), width) for x in (q, k)), cos, *args, **kwargs)
        return tuple(reordered(x, (2, -1), width) for x in turned)
    swap_global(m, patch, "apply_rotary_pos_emb", by_neighbours)


def _cached(model):
    return [p for p, m in attentions(model) if getattr(m, "layer_idx", None) is not None]


def _cache(wrong):
    """`wrong(old, new)` is what attention reads in the layer `m`; the cache itself stays right."""
    def change(m, patch):
        right = DynamicCache.update

        def update(self, key, value, layer, *args, **kwargs):
            kept = right(self, key, value, layer, *args, **kwargs)
            old = kept[0].shape[-2] - key.shape[-2]
            return tuple(wrong(t[..., :old, :], t[..., old:, :]) for t in kept) if old > 0 and layer == m.layer_idx else kept
        patch(DynamicCache, "update", update)
    return at(change)


OPERATORS = [
    Operator("mask_missing", "attention", _all, _inside(_no_mask), ("causal mask missing", "mask off by one", "padding mask missing")),
    Operator("mask_shifted", "attention", _all, _inside(_next_seen), ("mask off by one", "causal mask missing")),
    Operator("scale_x1.02", "attention", _all, _inside(_scale(1.02)), ("attention scale",)),
    Operator("scale_missing", "attention", _all, _inside(_unscaled), ("attention scale",)),
    Operator("softmax_axis", "attention", _all, _inside(_softmax_over_queries), ("wrong normalised axis",)),
    Operator("heads_joined_wrong", "attention", _all, _inside(_joined_wrong), ("permuted heads",)),
    Operator("heads_tiled", "attention", _all, _inside(_tiled), ("permuted heads",)),
    Operator("rotated_back", "attention", _rotation, at(_turned_back), ("RoPE sign",)),
    Operator("neighbours_rotated", "attention", _by_halves, at(_neighbours_turned), ("RoPE pairing",)),
    Operator("rotation_missing", "attention", _rotation, at(_no_rotation), ("RoPE missing",)),
    Operator("rotation_in_fp32", "attention", _rotation, at(_wide_rotation), ("missing rounding",), ("bf16",)),
    Operator("cache_shifted", "attention", _cached, _cache(lambda old, new: torch.cat([old[..., 1:, :], new[..., :1, :], new], -2)), ("causal cache",)),
    Operator("cache_order", "attention", _cached, _cache(lambda old, new: torch.cat([new, old], -2)), ("causal cache",)),
]
