"""Changes what a module's own code computes: the PyTorch functions it calls are handed to a function of ours, while it runs and nowhere else."""
import contextlib

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

UNCHANGED = object()   # a handler's answer: call the function as it is


class _Mode(TorchFunctionMode):
    def __init__(self, handler):
        super().__init__()
        self.handler, self.paused = handler, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = UNCHANGED if self.paused else self.handler(func, args, kwargs)
        return func(*args, **kwargs) if result is UNCHANGED else result


def within(module, patch, handler, children=False, on_call=None, on_result=None):
    """handler(func, args, kwargs) -> a result or UNCHANGED, for each function that `module`'s forward calls; those of its submodules only with `children`.

    on_call(args, kwargs) is told each call's arguments, on_result(result) may replace what it returns.
    """
    mode, right = _Mode(handler), module.forward

    def forward(*args, **kwargs):
        if on_call:
            on_call(args, kwargs)
        with mode:
            result = right(*args, **kwargs)
        return on_result(result) if on_result else result

    def paused(right_child):
        def call(*args, **kwargs):
            mode.paused += 1
            try:
                return right_child(*args, **kwargs)
            finally:
                mode.paused -= 1
        return call
    if not children:
        for child in module.modules():
            if child is not module:
                patch(child, "forward", paused(child.forward))
    patch(module, "forward", forward)


def swap_global(module, patch, name, replacement):
    """While `module` runs, the function `name` of the file it is written in is `replacement`."""
    space, right = vars(__import__("sys").modules[type(module).__module__]), module.forward

    def forward(*args, **kwargs):
        with contextlib.ExitStack() as stack:
            stack.callback(space.__setitem__, name, space[name])
            space[name] = replacement
            return right(*args, **kwargs)
    patch(module, "forward", forward)


def attention_arguments(args, kwargs):
    """A call of scaled_dot_product_attention as a dict of all its arguments."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    defaults = dict(attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)
    return {**defaults, **dict(zip(names, args)), **kwargs}


def attend(a):
    return F.scaled_dot_product_attention(a["query"], a["key"], a["value"], attn_mask=a["attn_mask"], dropout_p=a["dropout_p"], is_causal=a["is_causal"],
                                          scale=a["scale"], enable_gqa=a["enable_gqa"])


def on_attention(change):
    """A handler: change(arguments) -> arguments, a tensor (the result itself) or None (nothing to change here)."""
    def handler(func, args, kwargs):
        if func is not F.scaled_dot_product_attention:
            return UNCHANGED
        arguments = attention_arguments(args, kwargs)
        changed = change(arguments)
        if changed is None:
            return UNCHANGED
        return changed if torch.is_tensor(changed) else attend(changed)
    return handler
