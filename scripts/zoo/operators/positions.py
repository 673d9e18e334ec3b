"""Positions and times: RoPE's base, tables and indices off by one."""
import inspect

import torch
from torch import nn

from selftest_models import changes as c

from .operator import Operator, at


def _rotary(model):
    return [p for p, m in model.named_modules() if torch.is_tensor(getattr(m, "inv_freq", None)) and m.inv_freq.dim() == 1 and len(m.inv_freq) > 1]


def _base(factor):
    def change(m, _patch):
        m.inv_freq = m.inv_freq * factor ** (-torch.arange(len(m.inv_freq)) / len(m.inv_freq))
    return at(change)


def _theta(model):
    return [p for p, m in model.named_modules() if p and isinstance(getattr(m, "theta", None), (int, float)) and not list(m.parameters())]


def _other_theta(m, _patch):
    m.theta = m.theta * 2


def _by_position(model):
    return [p for p in _rotary(model) if "position_ids" in inspect.signature(model.get_submodule(p).forward).parameters]


def _later(m, patch):
    """Every position but the first is one too far."""
    right = m.forward
    patch(m, "forward", lambda x, position_ids, *args, **kwargs: right(x, position_ids + (position_ids > position_ids.min()), *args, **kwargs))


def _tables(model):
    return [p for p, m in model.named_modules() if isinstance(m, nn.Embedding) and ("pos" in p.rpartition(".")[2] or "wpe" in p)]


def _next_row(m, patch):
    c.before(m, patch, lambda ids: (ids + 1) % m.num_embeddings)


def _bare_tables(model):
    return [f"{p}#{n}" for p, m in model.named_modules() for n, t in m.named_parameters(recurse=False) if "pos" in n and t.dim() >= 2 and t.shape[-2] > 2]


def _rolled(model, path, _patch):
    owner, name = path.split("#")
    t = getattr(model.get_submodule(owner), name)
    t.copy_(t.roll(1, -2).clone())


def _times(model):
    return [p for p, m in model.named_modules() if type(m).__name__ in ("Timesteps", "GaussianFourierProjection")]


def _next_time(m, patch):
    c.before(m, patch, lambda t: t + 1)


OPERATORS = [
    Operator("rope_base_x2", "position", _rotary, _base(2.0), ("RoPE theta",)),
    Operator("rope_base_x10", "position", _rotary, _base(10.0), ("RoPE theta",)),
    Operator("rope_theta", "position", _theta, at(_other_theta), ("RoPE theta",)),
    Operator("positions_later", "position", _by_position, at(_later), ("position off by one",)),
    Operator("position_table_off_by_one", "position", _tables, at(_next_row), ("position off by one",)),
    Operator("position_table_rolled", "position", _bare_tables, _rolled, ("position off by one",)),
    Operator("time_off_by_one", "position", _times, at(_next_time), ("position off by one",)),
]
