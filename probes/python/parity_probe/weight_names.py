"""Names of a model's tensors as a state dict has them: parameters, buffers (persistent or not) and plain tensor attributes such as `self.freqs`."""
import typing

import torch


class Named(typing.NamedTuple):
    name: str
    tensor: torch.Tensor
    kept: bool  # in the state dict; what is not was computed when the model was built


_WRAPPER = "_orig_mod"  # torch.compile's


def strip(path):
    """A module path without torch.compile's wrappers."""
    return ".".join(p for p in path.split(".") if p != _WRAPPER) if _WRAPPER in path else path


def _attributes(x, name, found, depth=0):
    if isinstance(x, torch.Tensor):
        found.append((name, x))
    elif depth < 3 and isinstance(x, (list, tuple)) and len(x) <= 1024:
        for i, v in enumerate(x):
            _attributes(v, f"{name}.{i}", found, depth + 1)
    elif depth < 3 and isinstance(x, dict) and len(x) <= 1024:
        for k, v in x.items():
            _attributes(v, f"{name}.{k}", found, depth + 1)


def of_module(module, path):
    """[Named] of `module` itself, children left out; a tied tensor comes once per name."""
    state = {**module._parameters, **module._buffers}
    found = [(k, t) for k, t in state.items() if isinstance(t, torch.Tensor)]
    for k, x in module.__dict__.items():
        if k not in ("_parameters", "_buffers", "_modules") and isinstance(x, (torch.Tensor, list, tuple, dict)) and not k.endswith("_hooks"):
            _attributes(x, k, found)
    kept = state.keys() - module._non_persistent_buffers_set
    return [Named(f"{path}.{k}" if path else k, t, k in kept) for k, t in found]


def of_model(model):
    """[Named] of the whole model, in state-dict order."""
    return [entry for path, module in model.named_modules(remove_duplicate=False) for entry in of_module(module, strip(path))]
