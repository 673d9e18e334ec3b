"""A mark in a traced program: "these values are what call number `serial` returned, those are what it was given".

A JAX primitive that hands on its first `outs` operands and only looks at the rest. It compiles to nothing, so a marked program is the program without marks;
`second_run` reads the marks. Scopes named after the serial say in which call an equation was traced, also where JAX takes a traced function from its cache.
"""
import contextlib
import importlib
import re

import jax
from jax.interpreters import ad, batching, mlir

try:
    from jax.extend.core import Primitive
except ImportError:
    from jax.core import Primitive

mark_p = Primitive("parity_mark")
mark_p.multiple_results = True
listener = None  # called with (operands, params) when a mark is computed outside any trace, as under vmap or grad without jit


def _given(operands, outs):
    return list(operands[:outs])


@mark_p.def_impl
def _impl(*operands, outs, **params):
    if listener is not None:
        listener(operands, outs=outs, **params)
    return _given(operands, outs)


@mark_p.def_abstract_eval
def _abstract(*avals, outs, **_):
    return _given(avals, outs)


def _jvp(primals, tangents, *, outs, **params):
    return mark_p.bind(*primals, outs=outs, **params), _given(tangents, outs)


def _batch(operands, dims, *, outs, **params):
    return mark_p.bind(*operands, outs=outs, **params), _given(dims, outs)


ad.primitive_jvps[mark_p] = _jvp
batching.primitive_batchers[mark_p] = _batch
mlir.register_lowering(mark_p, lambda ctx, *operands, outs, **_: _given(operands, outs))
for module in ("jax._src.shard_map", "jax.experimental.shard_map"):  # it knows by primitive which results are the same on all devices
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module(module).register_standard_check(mark_p)
        importlib.import_module(module).register_standard_rewrite(mark_p)


def scope(serial):
    """Context manager: equations traced inside belong to call number `serial`."""
    return jax.named_scope(f"parity_call_{serial}")


def serials(equation):
    """Numbers of the calls whose scopes `equation` was traced in, outermost first."""
    return tuple(int(n) for n in re.findall(r"parity_call_(\d+)", str(equation.source_info.name_stack)))
