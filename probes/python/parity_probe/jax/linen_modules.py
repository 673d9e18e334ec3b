"""flax.linen: paths from the scopes modules run in, variables, and a listener on method calls (linen's own interceptors, which see through apply, bound modules
and lifted transforms)."""
import contextlib
import sys

from .arrays import named_leaves
from .calls import join


def is_module(x):
    linen = sys.modules.get("flax.linen")
    return linen is not None and isinstance(x, linen.Module)


class Place:
    """Where a linen call is: scope path within its `apply`, and the path of that `apply` itself (modules apply others: a tied output layer)."""

    def __init__(self, base, scope_path, name):
        self.base, self.scope_path, self.name = base, scope_path, name

    @property
    def path(self):
        return join(self.base, *self.scope_path)


def place(module, running):
    """Place of `module`, called inside `running` (the innermost module call that goes on, or None)."""
    scope_path, outer = tuple(module.scope.path), running.linen if running is not None else None
    if running is None:
        return Place("", scope_path, module.name)
    if outer is None:  # inside an nnx module
        return Place(running.path, scope_path, module.name)
    inside = scope_path[:len(outer.scope_path)] == outer.scope_path
    if inside and (len(scope_path) > len(outer.scope_path) or module.name == outer.name):
        return Place(outer.base, scope_path, module.name)
    return Place(join(running.path, module.name or ""), scope_path, module.name)  # an apply of its own


def weights(module, path):
    """[(path, array)] of the variables `module` sees, all collections; the collection's name is left out unless two say the same."""
    found, taken = [], set()
    for collection, tree in module.variables.items():
        for name, x in named_leaves(tree, path):
            if name in taken:
                name = join(path, collection, name[len(path):].lstrip("."))
            taken.add(name)
            found.append((name, x))
    return found


@contextlib.contextmanager
def calls(listener):
    """While it lasts, `listener(module, method, original, args, kwargs)` stands in for linen modules' methods, initialisation left out."""
    linen = sys.modules.get("flax.linen")
    if linen is None:
        yield
        return

    def intercept(following, args, kwargs, context):
        module = context.module
        if module.scope is None or module.is_initializing() or context.method_name in ("setup", "__post_init__"):
            return following(*args, **kwargs)
        return listener(module, context.method_name, following, args, kwargs)
    with linen.intercept_methods(intercept):
        yield
