"""Mistakes that more than one model family can have, as functions that put them into a module."""
import types

import torch
from torch.nn import functional as F


def forward(module, patch, function):
    """`module` calls function(module, *args, **kwargs) from now on."""
    patch(module, "forward", types.MethodType(function, module))


def after(module, patch, change):
    """`change(output)` is what `module` returns; a tuple's first element is changed."""
    right = module.forward

    def wrong(*args, **kwargs):
        out = right(*args, **kwargs)
        return (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)
    patch(module, "forward", wrong)


def before(module, patch, change):
    """`module` gets change(first argument)."""
    right = module.forward
    patch(module, "forward", lambda x, *args, **kwargs: right(change(x), *args, **kwargs))


def modules(model, kind):
    """All modules of the class named `kind`, in order."""
    return [m for m in model.modules() if type(m).__name__ == kind]


def set_all(model, kind, attribute, value):
    for m in modules(model, kind):
        setattr(m, attribute, value)


def scaled_product(gain):
    """forward of nn.Linear or Conv1D whose weights carry a scale that is off by `gain` (in float32, rounded once)."""
    def product(self, x):
        w = self.weight.t() if type(self).__name__ == "Conv1D" else self.weight
        y = x.float() @ w.float().t() * (1 + gain)
        return (y if self.bias is None else y + self.bias.float()).to(x.dtype)
    return product


def layer_norm(variance=None, axis=-1, low=False):
    """forward of nn.LayerNorm with another variance or axis; `low`: every step rounds to the module's input dtype."""
    def norm(self, x):
        v = x if low else x.float()
        d = v - v.mean(axis, keepdim=True)
        var = (d * d).mean(axis, keepdim=True) if variance is None else variance(v)
        y = d * torch.rsqrt(var + self.eps)
        for p, combine in ((self.weight, torch.mul), (self.bias, torch.add)):
            y = y if p is None else combine(y, p if low else p.float())
        return y.to(x.dtype)
    return norm


def rms_norm(low=False, axis=-1, gain_first=True):
    """forward of transformers' RMSNorm classes: `low`: steps in the input's dtype; `gain_first`: the weight is applied before the rounding."""
    def norm(self, x):
        v = x if low else x.float()
        y = v * torch.rsqrt((v * v).mean(axis, keepdim=True) + self.variance_epsilon)
        return (self.weight.float() * y).to(x.dtype) if gain_first and not low else self.weight * y.to(x.dtype)
    return norm


def forwards(kind, function):
    """put_in for every module of the class named `kind`."""
    def put_in(model, patch):
        for m in modules(model, kind):
            forward(m, patch, function)
    return put_in


def on(path, change):
    """put_in that applies change(module, patch) to the module at `path`."""
    return lambda model, patch: change(model.get_submodule(path), patch)


def unbiased(v):
    return v.var(-1, keepdim=True, unbiased=True)


def no_bias(module):
    module.bias = None


def zero_bias(module):
    module.bias.zero_()


def transpose(module):
    """A square weight loaded in the other layout."""
    module.weight.copy_(module.weight.t().clone())


def same_weights(into, source):
    """`into` got the checkpoint entries of `source`."""
    into.load_state_dict(source.state_dict())


def swap_weights(a, b):
    kept = {k: v.clone() for k, v in a.state_dict().items()}
    a.load_state_dict(b.state_dict())
    b.load_state_dict(kept)


def stale(module, source, patch):
    """`module` returns what `source` returned last (a buffer reused too early)."""
    last = []
    right_source, right = source.forward, module.forward

    def keep(*args, **kwargs):
        out = right_source(*args, **kwargs)
        last[:] = [out]
        return out

    def old(*args, **kwargs):
        right(*args, **kwargs)
        return last[0].clone()
    patch(source, "forward", keep)
    patch(module, "forward", old)


def sdpa(patch, change):
    """change(keyword arguments of scaled_dot_product_attention) before each call; q, k, v are named query, key, value."""
    right = F.scaled_dot_product_attention

    def wrong(query, key, value, **kwargs):
        arguments = dict(query=query, key=key, value=value, **kwargs)
        change(arguments)
        return right(arguments.pop("query"), arguments.pop("key"), arguments.pop("value"), **arguments)
    patch(F, "scaled_dot_product_attention", wrong)
