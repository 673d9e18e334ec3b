"""flax.nnx: where a module lies in the model, its variables, and a listener on every module's `__call__`.

nnx.jit, nnx.remat, nnx.split and merge call copies of the modules. The copies keep plain attributes, so each module carries its path as one while recording;
that also gives every block its own trace under nnx.jit. A copy made from an older split is known by the model's class, its modules by their place in it.
"""
import contextlib
import functools
import sys
import weakref

from .arrays import is_array, is_traced, plain
from .calls import join

_STAMP = "parity_probe_path"


def is_module(x):
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(x, nnx.Module)


def _entries(x):
    if is_module(x):
        return [(k, v) for k, v in vars(x).items() if not k.startswith(("_pytree__", "_object__")) and k != _STAMP]
    if isinstance(x, dict):
        return list(x.items())
    return list(enumerate(x)) if isinstance(x, (list, tuple)) else []


def walk(x, path="", seen=None):
    """(path, module or array) of all that `x` holds, itself first; what is shared comes at its first path."""
    seen = set() if seen is None else seen
    if is_module(x) or isinstance(x, (list, tuple, dict)):
        if id(x) in seen:
            return
        seen.add(id(x))
        if is_module(x):
            yield path, x
        for name, value in _entries(x):
            yield from walk(value, join(path, name), seen)
    else:
        x = plain(x) if not _is_random(x) else None
        if is_array(x):
            yield path, x


def _is_random(x):
    return any(c.__name__ in ("RngState", "RngStream", "Rngs") for c in type(x).__mro__)


def weights(module):
    """[(path, array)] of all variables (parameters, batch statistics, ...) and plain arrays; the state of random generators left out."""
    return [(path, x) for path, x in walk(module) if not is_module(x)]


class Places:
    """Module -> its path in the model."""

    def __init__(self, model, number):
        self._model, self._prefix, self._found, self._stamped = model, f"{number}:", {}, []

    @contextlib.contextmanager
    def stamped(self):
        """While it lasts the model's modules, and so their copies, know their paths."""
        try:
            self._remember(self._model, "")
            yield
        finally:
            for m in filter(None, (ref() for ref in self._stamped)):
                if _STAMP in vars(m):
                    delattr(m, _STAMP)

    def _remember(self, top, base):
        for path, m in walk(top, base):
            if is_module(m):
                self._found[id(m)] = (weakref.ref(m), path)
                if callable(getattr(type(m), "__call__", None)) and _STAMP not in vars(m):
                    with contextlib.suppress(Exception):  # flax forbids it from inside another trace: then the copy of a copy stays unknown
                        setattr(m, _STAMP, self._prefix + path)
                        self._stamped.append(weakref.ref(m))

    def _known(self, module):
        ref, path = self._found.get(id(module), (None, None))
        if ref is not None and ref() is module:
            return path
        stamp = vars(module).get(_STAMP, "")
        return stamp[len(self._prefix):] if stamp.startswith(self._prefix) else None

    def _is_copy(self, module):
        """Was it merged from a split of the model? Outside a trace it then shares arrays with it."""
        arrays = [x for _, x in weights(module)]
        return all(map(is_traced, arrays)) or not {id(x) for x in arrays}.isdisjoint(id(x) for _, x in weights(self._model))

    def find(self, module, running):
        """Path of `module`; `running` is the module call that goes on (None outside). None for a stranger."""
        path = self._known(module)
        if path is not None:
            return path
        if running is not None and is_module(running.module):
            self._remember(running.module, running.path)  # added since
        elif running is None and type(module) is type(self._model) and self._is_copy(module):
            self._remember(module, "")
        return self._known(module)


def _classes(cls):
    for c in cls.__subclasses__():
        yield c
        yield from _classes(c)


@contextlib.contextmanager
def calls(listener):
    """While it lasts, `listener(module, original, args, kwargs)` stands in for each nnx module's `__call__`."""
    nnx = sys.modules.get("flax.nnx")
    changed = []

    def wrap(cls, original):
        @functools.wraps(original, updated=())
        def call(module, *args, **kwargs):
            bound = original.__get__(module, type(module)) if hasattr(original, "__get__") else functools.partial(original, module)
            return listener(module, bound, args, kwargs)
        changed.append((cls, original))
        cls.__call__ = call
    try:
        for cls in {c: None for c in _classes(nnx.Module)} if nnx is not None else ():
            if "__call__" in vars(cls):
                wrap(cls, vars(cls)["__call__"])
        yield
    finally:
        for cls, original in changed:
            cls.__call__ = original
