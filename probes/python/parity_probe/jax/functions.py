"""Functions that a recording names. A Python function is exchanged from the inside (its code object), so that every reference is caught: `from x import f`
copies, closures, decorated and jitted wrappers, methods."""
import contextlib
import functools
import importlib
import inspect
import types

from ..errors import Error


_NOFREE = 0x40  # flag of code without free variables, up to Python 3.11


def _resolve(spec):
    module, _, name = spec.partition(":")
    if not name:
        raise Error(f"function {spec!r}: give it as 'package.module:function'")
    try:
        found = importlib.import_module(module)
    except ImportError as e:
        raise Error(f"function {spec!r}: module {module} cannot be imported: {e}") from e
    for step in name.split("."):
        if not hasattr(found, step):
            raise Error(f"function {spec!r}: {step!r} is not in {getattr(found, '__name__', found)}")
        found = getattr(found, step)
    return found


def inner(function):
    """The Python function in a jitted, decorated or partial one, or a bound method's; None when there is none."""
    for _ in range(16):
        if isinstance(function, types.FunctionType):
            return function
        function = next((getattr(function, k) for k in ("__func__", "__wrapped__", "func", "fun") if hasattr(function, k)), None)
    return None


def find(spec):
    """(name, Python function) of a name or an object. Raises parity_probe.Error when it leads to none."""
    function = inner(_resolve(spec) if isinstance(spec, str) else spec)
    if function is None:
        raise Error(f"function {spec!r}: is not a Python function; name the function that calls it")
    return function.__name__.strip("<>"), function


@contextlib.contextmanager
def exchanged(function, listener):
    """While it lasts, calling `function` calls `listener(original, args, kwargs)` instead."""
    code, had_signature = function.__code__, "__signature__" in vars(function)
    original = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    original.__kwdefaults__, original.__qualname__, original.__module__ = function.__kwdefaults__, function.__qualname__, function.__module__

    def call(*args, **kwargs):
        return listener(original, args, kwargs)
    signature = inspect.signature(function)
    stand_in = _forward.__code__
    function.__code__ = stand_in.replace(
        co_consts=tuple(call if c == "LISTENER" else c for c in stand_in.co_consts), co_freevars=code.co_freevars, co_name=code.co_name,
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_flags=stand_in.co_flags & ~_NOFREE)
    if not had_signature:
        function.__signature__ = signature  # jax.jit looks for its static arguments there
    try:
        yield
    finally:
        function.__code__ = code
        if not had_signature:
            vars(function).pop("__signature__", None)


def _forward(*args, **kwargs):
    return "LISTENER".__call__(*args, **kwargs)


@contextlib.contextmanager
def all_exchanged(found, listener):
    """`exchanged` for [(name, function)]; `listener(name, original, args, kwargs)`."""
    with contextlib.ExitStack() as stack:
        for name, function in found:
            stack.enter_context(exchanged(function, functools.partial(listener, name)))
        yield
