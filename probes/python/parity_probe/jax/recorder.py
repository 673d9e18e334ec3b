"""Recorder: what `parity_probe.jax.record` returns. It keeps the stack of running calls, and writes their values or marks them in a trace."""
import contextlib
import functools
import os
import sys
import threading
import warnings

import jax
import numpy as np

from .. import lines
from ..errors import Error
from ..version import __version__
from ..writer import Writer, check_path
from . import about, compiled, functions, linen_modules, marks, nnx_modules
from .arrays import is_array, is_flax, is_traced, leaves, named_leaves
from .calls import Call, Instances, join
from .rank_writers import RankWriters
from .second_run import Contents, SecondRun, bodies

_NOTHING = ("nothing was recorded: inside the block {what} called, or only by way of code compiled ahead of time (.lower().compile()) or exported, "
            "which cannot be seen; call the module or the jitted function itself inside the block{more}")


class Recorder:
    """Enter it to record. An older file at `path` is replaced when the first value arrives; an exception in the block leaves the file with `complete` 0."""

    def __init__(self, target, path, functions_, primitives, weights, config, level="module", mesh=None):
        self.path, self.error = os.fspath(path), None
        check_path(self.path)
        module = getattr(target, "module", None)
        self._linen = target if linen_modules.is_module(target) else module if linen_modules.is_module(module) else None
        self._scope = self._linen.scope.root if self._linen is not None and self._linen.scope is not None else None
        nnx = nnx_modules.is_module(target)
        self._functions = [functions.find(f) for f in ([functions_] if isinstance(functions_, str) or callable(functions_) else functions_)]
        self._root = None
        if not nnx and self._linen is None and target is not None:
            self._root = functions.inner(target) if callable(target) else None
            if self._root is None:
                raise TypeError(f"parity_probe.jax.record: expected a flax module, a Python function or None, got {type(target).__name__}")
        if target is None and not self._functions:
            raise TypeError("parity_probe.jax.record: without a target, name functions")
        self._places = nnx_modules.Places(target, id(self)) if nnx else None
        self._target, self._primitives = target, primitives
        self._weights, self._written, self._dtypes, self._boundaries = named_leaves(weights) if weights is not None else [], set(), {}, 0
        self._outside, self._closed = Call(path="~"), set()
        self._running, self._known, self._contents, self._second, self._differences, self._busy = [], {}, Contents(primitives), {}, {}, False
        model = "" if target is None else getattr(self._root or type(target), "__name__", "")
        self._mesh, writer = mesh, Writer if mesh is None else functools.partial(RankWriters, mesh=mesh)
        self._writer = writer(self.path, config=config if config is not None else about.configuration(target), model=model,
                              producer=f"parity_probe.jax {__version__}", about=lambda: about.collect(self._dtypes), level=level)

    # the block

    def __enter__(self):
        if marks.listener is not None:
            raise Error(f"{self.path}: a recording is running already; end it first")
        self._thread = threading.get_ident()
        self._exits = contextlib.ExitStack()
        with contextlib.ExitStack() as exits:
            marks.listener = self._computed
            exits.callback(setattr, marks, "listener", None)
            exits.enter_context(compiled.fresh_caches())
            exits.enter_context(compiled.programs(self._program))
            exits.enter_context(linen_modules.calls(self._linen_call))
            if self._places is not None:
                exits.enter_context(self._places.stamped())
                exits.enter_context(nnx_modules.calls(self._nnx_call))
            exits.enter_context(functions.all_exchanged(self._functions, self._function_call))
            if self._root is not None:
                exits.enter_context(functions.exchanged(self._root, self._root_call))
            self._exits = exits.pop_all()
        return self

    def __exit__(self, kind, exception, traceback):
        self._exits.close()
        try:
            self._finish(kind is None)
        except Error:
            if kind is None:
                raise
        return False

    def _finish(self, complete):
        if self.error is not None:
            if self._boundaries:
                self._guard_close(False)
            raise self.error
        if not self._boundaries:
            if complete:
                what = f"the {type(self._target).__name__} was not" if self._target is not None else "none of the functions was"
                if self._closed:
                    raise Error(f"{self.path}: nothing was recorded: all calls were inside {', '.join(sorted(self._closed))}, which is not looked into")
                more = "; for functions alone: record(None, ...)" if self._functions and self._target is not None else ""
                raise Error(f"{self.path}: " + _NOTHING.format(what=what, more=more))
            return
        for name, (unequal, size) in self._differences.items():
            self._writer.note(text=f"{name}: the run that was recorded differs from the one whose results the caller got in {unequal} of {size} elements "
                              "of the results")
        if self._closed:
            self._writer.note(text=f"calls inside {', '.join(sorted(self._closed))} were not recorded")
        self._writer.close(complete)

    def _guard_close(self, complete):
        with contextlib.suppress(Error):
            self._writer.close(complete)

    def _guard(self, step, *args):
        """Runs a step of the recording; its failure ends the recording, never the model."""
        if self.error is not None:
            return None
        try:
            return step(*args)
        except Exception as e:
            self.error = e if isinstance(e, Error) else Error(f"{self.path}: recording failed: {type(e).__name__}: {e}")
            self.error.__cause__ = None if e is self.error else e
            warnings.warn(f"recording stopped, the model runs on: {self.error}", stacklevel=2)
            return None

    # calls

    @property
    def _silent(self):
        return self._busy or self.error is not None or threading.get_ident() != self._thread

    def _inner_module(self):
        """The innermost running module call, or None."""
        return next((c for c in reversed(self._running) if c.name is None), None)

    def _nnx_call(self, module, original, args, kwargs):
        running = self._inner_module() if not self._silent else None
        if self._silent or (running is not None and running.module is module):  # super().__call__()
            return original(*args, **kwargs)
        path = self._guard(self._places.find, module, running)
        if path is None:
            return original(*args, **kwargs)
        known = [(join(path, name), x) for name, x in nnx_modules.weights(module)] if running is None else []
        return self._run(Call(path=path, module=module), original, args, kwargs, known)

    def _linen_call(self, module, method, original, args, kwargs):
        if self._silent:
            return original(*args, **kwargs)
        running = self._inner_module()
        if running is None:
            if self._linen is not None and type(module) is type(self._linen):
                self._scope = module.scope.root  # what else is called in the same apply is the model's, too
            if module.scope.root is not self._scope or method.startswith("_") and method != "__call__":
                return original(*args, **kwargs)
        elif method != "__call__":
            return original(*args, **kwargs)
        where = linen_modules.place(module, running)
        if running is not None and where.path == running.path:  # the inside of a lifted class, or a wrapper without a name
            return original(*args, **kwargs)
        known = linen_modules.weights(module, where.path) if running is None else []
        return self._run(Call(path=where.path, module=module, linen=where), original, args, kwargs, known)

    def _root_call(self, original, args, kwargs):
        if self._silent:
            return original(*args, **kwargs)
        return self._run(Call(path=""), original, args, kwargs)

    def _function_call(self, name, original, args, kwargs):
        if self._silent:
            return original(*args, **kwargs)
        return self._run(Call(name=name, owner=self._inner_module() or self._outside), original, args, kwargs)

    def _run(self, call, original, args, kwargs, weights=()):
        """Runs a call; returns its result, with marks on what is traced."""
        self._known[call.serial] = call
        self._running.append(call)
        given = self._guard(self._arguments, args, kwargs) or []
        traced = self._guard(self._start_call, [*self._weights, *weights]) or []
        try:
            with marks.scope(call.serial):
                result = original(*args, **kwargs)
                marked = self._guard(self._finish_call, call, original, result, given, traced)
        finally:
            self._running.pop()
            call.module = None  # a copy under nnx.jit holds what was traced
        return result if marked is None else marked

    def _arguments(self, args, kwargs):
        """The arrays among them; what is not traced is kept as it is now, for a program inside may be given its memory."""
        return [x if is_traced(x) else self._kept(x) for x in leaves((args, kwargs))]

    def _kept(self, x):
        """Of a recording of ranks the array itself: its copies may differ, and only one would be taken."""
        return np.asarray(x) if self._mesh is None else x

    def _start_call(self, weights):
        """Writes weights that are there; returns those being traced."""
        new = [(n, x) for n, x in weights if n not in self._written]
        for name, x in new:
            self._dtypes[name] = str(x.dtype), int(np.size(x))
        for name, x in new:
            if not is_traced(x):
                self._write_weight(name, x)
        self._weights = []
        return [(n, x) for n, x in new if is_traced(x)]

    def _finish_call(self, call, original, result, given, weights):
        """Writes values that are there; marks those being traced. The result to hand on."""
        tree = jax.tree_util.tree_structure(result, is_leaf=is_flax)
        parts = jax.tree_util.tree_leaves(result, is_leaf=is_flax)
        outs = [x for x in parts if is_array(x)]
        if not any(map(is_traced, outs)):
            function = original if call.module is None else type(call.module).__call__
            self._write(call, outs, [x for x in given if not is_traced(x)], lines.of_call(function, sys._getframe(1)))
            return result
        names = tuple(n for n, _ in weights)
        marked = iter(marks.mark_p.bind(*outs, *given, *(x for _, x in weights), serial=call.serial, outs=len(outs), weights=names))
        replaced = [(m if is_traced(x) else x) if is_array(x) and (m := next(marked)) is not None else x for x in parts]
        return jax.tree_util.tree_unflatten(tree, replaced)

    # values

    def _computed(self, operands, serial, outs, weights):
        """A mark outside of any trace (vmap, grad without jit): its values are here."""
        if not self._silent and serial in self._known and not any(map(is_traced, operands)):
            self._guard(self._write_mark, self._known[serial], operands, outs, weights, lines.of_caller(sys._getframe(1)))

    def _program(self, jaxpr, args, name, run):
        """A compiled program starts: see compiled.programs."""
        if self._silent or not self._contents.recorded(jaxpr):
            return run()
        base = self._inner_module() or self._outside
        equations = jaxpr.jaxpr.eqns
        if len(equations) == 1 and not any(bodies(equations[0])) and equations[0].primitive is not marks.mark_p:  # an op outside jit: no second run
            done = run()
            self._guard(self._write_primitive, base.step(equations[0].primitive.name), done[0], lines.of_caller(sys._getframe(1)))
            return done
        results = self._guard(self._record_program, jaxpr, args, base)
        done = run()
        if results is not None:
            self._guard(self._compare, f"program {name} in {base.path or 'the model'}", results, done[0])
        return done

    def _record_program(self, jaxpr, args, base):
        self._busy = True
        try:
            if id(jaxpr) not in self._second:
                self._second[id(jaxpr)] = SecondRun(jaxpr, self._contents, self._primitives, self._kept)
            if self._mesh is None:
                args = [jax.device_put(a, a.devices().pop()) if isinstance(a, jax.Array) and len(a.devices()) > 1 else a for a in args]
            results, slots = self._second[id(jaxpr)].run(args)
        finally:
            self._busy = False
        self._closed |= self._second[id(jaxpr)].closed
        instances, paths = Instances(base, self._known), {}
        for slot, values in slots:
            if slot.mark is not None:
                self._write_mark(instances.call(slot.chain), values, slot.mark["outs"], slot.mark["weights"], slot.source)
                continue
            if slot not in paths:
                paths[slot] = instances.call(slot.chain).owner.step(slot.name)
            self._write_primitive(paths[slot], values, slot.source)
        return results

    def _compare(self, name, recorded, given):
        """Counts elements in which the recorded run's results differ from those the caller gets."""
        unequal = size = 0
        for a, b in zip(recorded, given):
            if is_array(a):
                a, b = np.asarray(a), np.asarray(b)
                size += a.size
                unequal += int((a.view(f"V{a.itemsize}") != b.view(f"V{b.itemsize}")).sum()) if a.size and a.ndim else int(a.tobytes() != b.tobytes())
        if unequal:
            self._differences[name] = (unequal, size)

    def _write_mark(self, call, operands, outs, weights, source):
        end = len(operands) - len(weights)
        for name, x in zip(weights, operands[end:]):
            self._write_weight(name, x)
        self._write(call, operands[:outs], operands[outs:end], source)

    def _write_weight(self, name, x):
        if name not in self._written:
            self._written.add(name)
            self._writer.write(name, self._kept(x), role="weight", source="")

    def _write(self, call, outs, given, source):
        for role, values in (("input", given), ("output", outs)):
            for i, x in enumerate(values):
                self._writer.write(f"{call.path}[{i}]" if i else call.path, self._kept(x), role=role, source=source if role == "output" else "")
        self._boundaries += len(outs)

    def _write_primitive(self, path, values, source):
        arrays = [x for x in values if is_array(x)]
        for i, x in enumerate(arrays):
            self._writer.write(f"{path}[{i}]" if i else path, self._kept(x), source=source)
        self._boundaries += len(arrays)
