"""Arrays in the arguments and results of calls."""
import jax
import numpy as np


def is_array(x):
    """An array with numbers in it: JAX's (also traced), numpy's. Random keys are none."""
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)):
        return False
    dtype = x.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "OSUMm":
        return False
    return not jax.dtypes.issubdtype(dtype, jax.dtypes.extended)


def is_traced(x):
    return isinstance(x, jax.core.Tracer)


def is_flax(x):
    """A flax module or variable: never opened as a container (nnx's are trees since flax 0.11)."""
    return any(c.__module__.startswith("flax.") and c.__name__ in ("Module", "Variable", "Rngs", "Object", "Pytree", "Scope") for c in type(x).__mro__)


def plain(x):
    """The array in an nnx.Variable; anything else as it is."""
    if is_flax(x) and any(c.__name__ == "Variable" for c in type(x).__mro__):
        return x.get_raw_value() if hasattr(x, "get_raw_value") else x.raw_value
    return x


def leaves(tree):
    """The arrays in a tree of arguments, in order."""
    return [x for x in map(plain, jax.tree_util.tree_leaves(tree, is_leaf=is_flax)) if is_array(x)]


def named_leaves(tree, prefix=""):
    """[(dotted name, array)] of a tree of dicts, sequences and other containers."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_flax)
    out = []
    for keys, x in found:
        if is_array(plain(x)):
            steps = [str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in keys]
            out.append((".".join(([prefix] if prefix else []) + steps), plain(x)))
    return out
