"""Where in any model something of a kind is: by type, attributes and shapes, never by the model's name. All lists are in the model's order."""
import functools
import inspect
import re

from torch import nn

CONVOLUTIONS = nn.modules.conv._ConvNd


def is_linear(m):
    return isinstance(m, nn.Linear) or (type(m).__name__ == "Conv1D" and hasattr(m, "nf"))


def linears(model):
    return [(p, m) for p, m in model.named_modules() if is_linear(m)]


def eps_name(m):
    return next((a for a in ("eps", "variance_epsilon", "norm_eps") if isinstance(getattr(m, a, None), float)), None)


def norms(model):
    return [(p, m) for p, m in model.named_modules() if "Norm" in type(m).__name__ and eps_name(m) and not list(m.children())]


def norm_kind(m):
    for kind, name in ((nn.LayerNorm, "layer"), (nn.GroupNorm, "group"), (nn.modules.batchnorm._BatchNorm, "batch")):
        if isinstance(m, kind):
            return name
    return "rms"


def attentions(model):
    """Modules in whose own code attention is computed: they hold projections, or are what such a module calls."""
    found = []
    for path, m in model.named_modules():
        children = dict(m.named_children())
        names = set(children)
        if len([n for n in names if re.search(r"(^|_)(q|k|v|qkv|query|key|value|query_key_value|q_lin|Wqkv)(_|$)|proj", n)]) >= 2 and (
                "ttention" in type(m).__name__):
            found.append((path, m))
        elif "SelfAttention" in type(m).__name__ and names & {"query", "q", "query_key_value"}:
            found.append((path, m))
        elif re.search(r"Attention$", type(m).__name__) and names & {"Wqkv", "query_key_value", "qkv", "c_attn"}:
            found.append((path, m))
    return found


def heads_of(m):
    """Number of heads of an attention module, or None."""
    for name in ("num_heads", "num_attention_heads", "heads", "n_heads"):
        value = getattr(m, name, None) or getattr(getattr(m, "config", None), name, None)
        if isinstance(value, int) and value > 1:
            return value
    return None


def head_width(m, projection):
    """Features of one head in the output of `projection`, or None."""
    for name in ("head_dim", "attention_head_size", "dim_head", "key_value_proj_dim"):
        value = getattr(m, name, None)
        if isinstance(value, int) and value > 0:
            return value
    heads = heads_of(m)
    return projection.weight.shape[0] // heads if heads and projection.weight.shape[0] % heads == 0 else None


def siblings(model):
    """[(parent path, name a, a, name b, b)]: linear layers of one parent that could take each other's weights."""
    found = []
    for path, m in model.named_modules():
        if isinstance(m, (nn.ModuleList, nn.Sequential)):
            continue
        own = [(n, c) for n, c in m.named_children() if is_linear(c)]
        for i, (a, x) in enumerate(own):
            for b, y in own[i + 1:]:
                if x.weight.shape == y.weight.shape and (x.bias is None) == (y.bias is None):
                    found.append((path, a, x, b, y))
    return found


def stacks(model):
    """[(path, list of equal blocks)] of at least two blocks of one class."""
    return [(p, list(m)) for p, m in model.named_modules()
            if isinstance(m, nn.ModuleList) and len(m) > 1 and len({type(c) for c in m}) == 1 and m[0] is not None and list(m[0].children())]


def same_part(model):
    """[(path, part in block i, path, part in block i + 1)]: linear layers that stand at one place of neighbouring blocks."""
    found = []
    for path, blocks in stacks(model):
        for i in range(len(blocks) - 1):
            later = dict(blocks[i + 1].named_modules())
            for name, m in blocks[i].named_modules():
                other = later.get(name)
                if is_linear(m) and is_linear(other) and m.weight.shape == other.weight.shape and (m.bias is None) == (other.bias is None):
                    found.append((f"{path}.{i}.{name}", m, f"{path}.{i + 1}.{name}", other))
    return found


def callers(model):
    """Modules with submodules and code of their own: no mere containers."""
    return [(p, m) for p, m in model.named_modules() if list(m.children()) and not isinstance(m, (nn.ModuleList, nn.Sequential, nn.ModuleDict))]


@functools.cache
def _code(kind):
    try:
        return inspect.getsource(inspect.unwrap(kind.forward))
    except (OSError, TypeError):
        return ""


def writes(m, pattern):
    """Does the module's own forward contain `pattern`?"""
    return bool(re.search(pattern, _code(type(m))))
