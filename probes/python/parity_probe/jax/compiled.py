"""Gets at the jitted functions that run while a recording does.

JAX keeps what it traced and compiled in caches and, once compiled, calls it without any Python. So inside the block (1) a value in JAX's cache keys is other
than anywhere else: everything is traced anew, and what was compiled before is found again afterwards; (2) the shortcut around Python is not taken; (3) the
function that starts a compiled program is wrapped. The last two have no public interface: two functions of jax._src.pjit, the same from JAX 0.4.35 to 0.10.2.
"""
import contextlib
import itertools
import threading

import jax

from ..errors import Error

_numbers = itertools.count(1_000_000)
_context = []


@contextlib.contextmanager
def fresh_caches():
    """While it lasts, this thread's JAX finds nothing in its caches that was traced outside."""
    if hasattr(jax, "make_user_context"):
        if not _context:
            _context.append(jax.make_user_context(None))
        with _context[0](next(_numbers)):
            yield
        return
    from jax._src import config
    if hasattr(config, "jax_xla_profile_version"):  # a number that only remote profiling reads; part of every cache key
        with config.jax_xla_profile_version(next(_numbers)):
            yield
        return
    jax.clear_caches()
    try:
        yield
    finally:
        jax.clear_caches()


@contextlib.contextmanager
def programs(seen):
    """While it lasts, `seen(jaxpr, args, name, run)` stands in for each start of a compiled program by this thread; it returns what `run()` returns, a tuple
    whose first element is the list of results. Raises parity_probe.Error for a JAX that has no such functions."""
    from jax._src import pjit
    thread = threading.get_ident()
    try:
        start, shortcut = pjit._pjit_call_impl_python, pjit._get_fastpath_data
    except AttributeError as e:
        raise Error(f"JAX {jax.__version__} starts compiled programs in a way this parity_probe does not know ({e}); known are 0.4.35 to 0.10") from e

    def wrapped_start(*args, jaxpr, **params):
        def run():
            return start(*args, jaxpr=jaxpr, **params)
        return seen(jaxpr, args, params.get("name", ""), run) if threading.get_ident() == thread else run()

    def no_shortcut(*args, **kwargs):
        return None if threading.get_ident() == thread else shortcut(*args, **kwargs)
    pjit._pjit_call_impl_python, pjit._get_fastpath_data = wrapped_start, no_shortcut
    try:
        yield
    finally:
        pjit._pjit_call_impl_python, pjit._get_fastpath_data = start, shortcut
