"""Tells a listener when modules of a model begin and end their calls, and where in the model they are.

It wraps torch.nn.Module.__call__ instead of registering hooks: PyTorch takes other kernels when it sees a hook (nn.TransformerEncoderLayer gives up its
fused path), and a recording must not change what is computed. It also sees keyword arguments, exceptions, and modules added while running.
"""
import functools
import threading
import weakref

import torch

from .weight_names import strip


def unwrap(model):
    """The module inside torch.compile's wrapper."""
    while type(model).__name__ == "OptimizedModule" and hasattr(model, "_orig_mod"):
        model = model._orig_mod
    return model


class ModulePaths:
    """Module object -> its (first) path in the model, "" for the model itself; None for strangers and torch.compile's wrappers."""

    def __init__(self, model):
        self.model, self._paths = model, {}
        self._scan()

    def _scan(self):
        for path, module in self.model.named_modules():
            if unwrap(module) is module and self._get(module) is None:
                self._paths[id(module)] = (weakref.ref(module), strip(path))

    def _get(self, module):
        ref, path = self._paths.get(id(module), (None, None))
        return (path,) if ref is not None and ref() is module else None

    def __getitem__(self, module):
        found = self._get(module)
        if found is None:
            self._scan()  # added since
            found = self._get(module)
            if found is None:
                self._paths[id(module)] = (weakref.ref(module), None)
                return None
        return found[0]


class ModuleCalls:
    """Context manager. `begin(module, path, args, kwargs)` -> a token, `end(token, result, error)`; both must not raise. Only the thread that entered counts."""

    def __init__(self, paths, begin, end):
        self.paths, self.begin, self.end = paths, begin, end
        self.active, self._entered = False, None

    def __enter__(self):
        original, thread = torch.nn.Module.__call__, threading.get_ident()

        @functools.wraps(original)
        def call(module, *args, **kwargs):
            if not self.active or threading.get_ident() != thread:
                return original(module, *args, **kwargs)
            inner = unwrap(module)
            path = self.paths[inner]
            if path is None or self._entered is module:
                self._entered = None
                return original(module, *args, **kwargs)
            # torch.compile's wrapper holds on to the __call__ it found, ours or PyTorch's: its call counts as the inner module's, once.
            self._entered = inner if inner is not module else None
            token = self.begin(inner, path, args, kwargs)
            try:
                result = original(module, *args, **kwargs)
            except BaseException as e:
                self.end(token, None, e)
                raise
            self.end(token, result, None)
            return result
        self._original, self._call, self.active = original, call, True
        torch.nn.Module.__call__ = call
        return self

    def __exit__(self, *_):
        self.active = False
        if torch.nn.Module.__call__ is self._call:  # somebody may have wrapped ours since; then it stays as a pass-through
            torch.nn.Module.__call__ = self._original
