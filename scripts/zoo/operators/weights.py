"""Weights loaded into the wrong place, in the wrong layout, with the wrong scale, or not at all."""
from torch import nn

from selftest_models import changes as c
from selftest_models.family import BF16, FP32

from ..places import CONVOLUTIONS, attentions, head_width, heads_of, linears, same_part, siblings
from .operator import Operator, at, only


def _gain(by):
    return at(lambda m, patch: c.forward(m, patch, c.scaled_product(by)))


def _conv_gain(m, _patch):
    m.weight.mul_(1 + 1e-3)


def _convolutions(model, least_in=1):
    return [p for p, m in model.named_modules() if isinstance(m, CONVOLUTIONS) and not isinstance(m, nn.modules.conv._ConvTransposeNd)
            and isinstance(m._parameters.get("weight"), nn.Parameter) and m.weight.shape[1] >= least_in]


def _swap(model, path, _patch):
    parent, a, b = path.split("|")
    owner = model.get_submodule(parent)
    c.swap_weights(getattr(owner, a), getattr(owner, b))


def _wrong_layer(model, path, _patch):
    first, second = path.split("|")
    c.same_weights(model.get_submodule(second), model.get_submodule(first))


def _biased(model):
    return [p for p, m in model.named_modules() if isinstance(m._parameters.get("bias"), nn.Parameter) and m.bias.dim() == 1]


def _square(model):
    return only(linears(model), lambda m: m.weight.shape[0] == m.weight.shape[1])


def _projection(m):
    """The projection of values (or, where it is fused, of all) and its heads' width."""
    for name in ("v_proj", "to_v", "value", "v_lin", "v", "query_key_value", "qkv", "Wqkv"):
        p = getattr(m, name, None)
        if p is not None and isinstance(p, nn.Linear):
            width = head_width(m, p)
            return (p, width) if width and heads_of(m) and p.weight.shape[0] >= 2 * width and p.weight.shape[0] % width == 0 else None
    return None


def _permute_heads(m, _patch):
    """The first two heads' rows exchanged."""
    p, width = _projection(m)
    for t in (p.weight, p.bias):
        if t is not None:
            t[:2 * width] = t[:2 * width].unflatten(0, (2, width)).flip(0).flatten(0, 1).clone()


def _reverse_channels(m, _patch):
    m.weight.copy_(m.weight.flip(1).clone())


def _pad_by_edge(m, _patch):
    m.padding_mode = "replicate"


def _padded(model):
    return [p for p in _convolutions(model) if (m := model.get_submodule(p)).padding_mode == "zeros" and m.padding != "same" and any(m.padding)
            and len(set(m._reversed_padding_repeated_twice)) and isinstance(m, nn.Conv2d)]


def _neighbours(model):
    return [f"{a}|{b}" for a, _x, b, _y in same_part(model)]


OPERATORS = [
    Operator("gain_1e-3", "weight", lambda model: only(linears(model)), _gain(1e-3), ("gain",)),
    Operator("gain_1e-4", "weight", lambda model: only(linears(model)), _gain(1e-4), ("gain",), FP32),
    Operator("gain_5e-3", "weight", lambda model: only(linears(model)), _gain(5e-3), ("gain",), BF16),
    Operator("conv_gain", "weight", _convolutions, at(_conv_gain), ("gain",), FP32),
    Operator("siblings_swapped", "weight", lambda model: [f"{p}|{a}|{b}" for p, a, _x, b, _y in siblings(model)], _swap, ("weights swapped",)),
    Operator("wrong_layer", "weight", _neighbours, _wrong_layer, ("wrong layer's weights",)),
    Operator("bias_dropped", "weight", _biased, at(lambda m, _patch: c.zero_bias(m)), ("missing bias",)),
    Operator("transposed", "weight", _square, at(lambda m, _patch: c.transpose(m)), ("transposed weight",)),
    Operator("heads_permuted", "weight", lambda model: only(attentions(model), _projection), at(_permute_heads), ("permuted heads",)),
    Operator("channels_reversed", "weight", lambda model: _convolutions(model, 3)[:1], at(_reverse_channels), ("channel order",)),
    Operator("edge_padding", "weight", _padded, at(_pad_by_edge)),
]
