"""The tensors in a module's arguments and results, under names: forward's parameter names, and a dot for each step into a container."""
import dataclasses
import inspect
import weakref
from collections.abc import Mapping

import torch

from .arguments import literal

_MAX_DEPTH = 6


def plain(t):
    """The tensor that ops see: `t` without the wrappers of torch.func.grad; None for one inside vmap, whose ops see all of the batch at once."""
    while torch._C._functorch.is_gradtrackingtensor(t):
        t = torch._C._functorch.get_unwrapped(t)
    return None if torch._C._functorch.is_functorch_wrapped_tensor(t) else t


def flatten(x, name, tensors, literals, depth=0):
    """Collects [(name, tensor)] and {name: JSON} from `x`. Caches and other objects are not opened: what they hold is known by its value ids, and
    every layer's call would list every layer's cache."""
    if isinstance(x, torch.Tensor):
        t = plain(x)
        if t is not None:
            tensors.append((name, t))
        else:
            literals[name] = literal(x)
        return
    items = None
    if depth < _MAX_DEPTH:
        if isinstance(x, Mapping):
            items = x.items()
        elif isinstance(x, tuple) and hasattr(x, "_fields"):
            items = zip(x._fields, x)
        elif isinstance(x, (list, tuple)):
            items = enumerate(x)
        elif dataclasses.is_dataclass(x) and not isinstance(x, type):
            items = [(f.name, getattr(x, f.name, None)) for f in dataclasses.fields(x)]
    if items is None:
        literals[name] = literal(x)
        return
    items = list(items)
    if len(items) > 8 and all(type(v) in (int, float, bool, str) or v is None for _, v in items):
        literals[name] = literal([v for _, v in items])
        return
    for key, value in items:
        flatten(value, f"{name}.{key}" if name else str(key), tensors, literals, depth + 1)


_known = weakref.WeakKeyDictionary()  # a function may hold tensors: the cache must not hold the function


def _parameters(forward):
    """(names of the positional parameters, name of *args or None) of a function."""
    try:
        return _known[forward]
    except (KeyError, TypeError):
        pass
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    found = ([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)],
             next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None))
    try:
        _known[forward] = found
    except TypeError:  # an object that takes no weak reference
        pass
    return found


def bind(module, args, kwargs):
    """[(parameter name of module.forward, value)] as the caller gave them; `*args` is `args.0`, unknown positions are their number."""
    if not args:
        return list(kwargs.items())
    forward = getattr(module, "forward", None)
    if hasattr(forward, "__func__"):  # the method is made anew at each access, its function is not
        names, rest = _parameters(forward.__func__)
        names = names[1:]
    else:
        names, rest = _parameters(forward)
    bound = []
    for i, value in enumerate(args):
        spare = i - len(names)
        bound.append((names[i] if spare < 0 else f"{rest}.{spare}" if rest else str(i), value))
    return bound + list(kwargs.items())


def inputs(module, args, kwargs):
    """([(name, tensor)], {name: literal}) of one call."""
    tensors, literals = [], {}
    for name, value in bind(module, args, kwargs):
        flatten(value, name, tensors, literals)
    return tensors, literals


def outputs(result):
    """[(name, tensor)] of a call's result; a single tensor is "0"."""
    tensors = []
    flatten(result, "", tensors, {})
    return [(name or "0", t) for name, t in tensors]
