"""Mistakes in norms: eps, variance, axis, groups, gain."""
import torch
from torch import nn

from selftest_models import changes as c

from ..places import eps_name, norm_kind, norms
from ..within import UNCHANGED, within
from .operator import Operator, at, only


def _eps(factor):
    def change(m, _patch):
        name = eps_name(m)
        setattr(m, name, getattr(m, name) * factor)
    return at(change)


def _of(*kinds):
    return lambda model: only(norms(model), lambda m: norm_kind(m) in kinds)


def _one_axis(model):
    return only(norms(model), lambda m: norm_kind(m) == "layer" and len(m.normalized_shape) == 1)


def _mean_axis(m, patch):
    """The mean square over the axis before the last."""
    def handler(func, args, kwargs):
        if func is torch.Tensor.mean and len(args) == 2 and args[1] in (-1, (-1,)) and args[0].dim() > 2:
            return args[0].mean(-2, **kwargs)
        return UNCHANGED
    within(m, patch, handler)


def _no_gain(m, _patch):
    m.weight.fill_(1)


def _halve_groups(m, _patch):
    m.num_groups //= 2


def _batch_statistics(m, patch):
    """The statistics of this batch for the stored ones: a model left in training mode."""
    c.forward(m, patch, lambda self, x: torch.nn.functional.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps))


OPERATORS = [
    Operator("norm_eps_x10", "norm", lambda model: only(norms(model)), _eps(10.0), ("norm eps",)),
    Operator("norm_eps_x0.1", "norm", lambda model: only(norms(model)), _eps(0.1), ("norm eps",)),
    Operator("norm_unbiased_variance", "norm", _one_axis, at(lambda m, patch: c.forward(m, patch, c.layer_norm(variance=c.unbiased))), ("unbiased variance",)),
    Operator("norm_axis", "norm", _one_axis, at(lambda m, patch: c.forward(m, patch, c.layer_norm(axis=-2))), ("wrong normalised axis",)),
    Operator("rms_axis", "norm", _of("rms"), at(_mean_axis), ("wrong normalised axis",)),
    Operator("norm_no_gain", "norm", lambda model: only(norms(model), lambda m: isinstance(getattr(m, "weight", None), nn.Parameter)), at(_no_gain),
             ("missing norm gain",)),
    Operator("norm_groups", "norm", lambda model: only(norms(model), lambda m: norm_kind(m) == "group" and m.num_groups % 2 == 0), at(_halve_groups)),
    Operator("norm_batch_statistics", "norm", _of("batch"), at(_batch_statistics)),
]
