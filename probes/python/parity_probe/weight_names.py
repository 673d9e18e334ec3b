"""State-dict names of a model's tensors: parameters, buffers (persistent or not) and plain tensor attributes such as `self.freqs`."""
import torch

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
    """[(name, tensor)] of `module` itself, children left out; a tied tensor comes once per name."""
    found = []
    for store in (module._parameters, module._buffers):
        found += [(k, t) for k, t in store.items() if isinstance(t, torch.Tensor)]
    for k, x in module.__dict__.items():
        if k not in ("_parameters", "_buffers", "_modules") and isinstance(x, (torch.Tensor, list, tuple, dict)) and not k.endswith("_hooks"):
            _attributes(x, k, found)
    return [(f"{path}.{k}" if path else k, t) for k, t in found]


def of_model(model):
    """[(name, tensor)] of the whole model, in state-dict order."""
    return [entry for path, module in model.named_modules(remove_duplicate=False) for entry in of_module(module, strip(path))]
