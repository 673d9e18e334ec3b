"""Runs a traced program once more, with the marked values (and every primitive's, where asked) as further outputs.

An interpreter of jaxprs that is itself traced and compiled. Calls that contain something to record are inlined (XLA inlines them too), scans hand out stacked
values. Only a while loop or a branch with something to record inside needs host callbacks: how often they run is known by nobody before.
"""
import contextlib

import jax
import numpy as np
from jax.experimental import io_callback

from .arrays import is_array
from .equations import makers, source
from .marks import mark_p, serials

_CALLS = {"pjit", "jit", "closed_call", "core_call", "core_closed_call", "checkpoint", "remat", "remat2", "custom_jvp_call", "custom_vjp_call",
          "custom_vjp_call_jaxpr"}
_BODY = ("jaxpr", "call_jaxpr", "fun_jaxpr")


class Slot:
    """A place in the program whose values are recorded: a mark, or a primitive (`name`). `count` values; `source`: the line that computed the first."""

    def __init__(self, chain, count, name=None, mark=None, source=""):
        self.chain, self.count, self.name, self.mark, self.source = chain, count, name, mark, source


class Loop:
    """A scan: its plan is run through `length` times."""

    def __init__(self, plan, length, reverse):
        self.plan, self.length, self.reverse = plan, length, reverse
        self.count = sum(step.count for step in plan)


def _open(jaxpr):
    """(jaxpr, its constants) of a closed or an open one."""
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") else (jaxpr, [])


def bodies(equation):
    """The jaxprs inside an equation."""
    for value in equation.params.values():
        for x in value if isinstance(value, (list, tuple)) else [value]:
            if hasattr(x, "jaxpr") or hasattr(x, "eqns"):
                yield _open(x)[0]


class Contents:
    """What jaxprs contain, remembered by object."""

    def __init__(self, primitives):
        self._primitives, self._known = primitives, {}

    def recorded(self, jaxpr):
        """Is there anything to record in it?"""
        return self._ask("recorded", jaxpr, lambda e: self._primitives or e.primitive is mark_p, self.recorded)

    def marked(self, jaxpr):
        """Is there a mark in it?"""
        return self._ask("marked", jaxpr, lambda e: e.primitive is mark_p, self.marked)

    def dynamic(self, jaxpr):
        """Is there anything to record inside a while loop or a branch?"""
        return self._ask("dynamic", jaxpr, lambda e: e.primitive.name in ("while", "cond") and any(map(self.recorded, bodies(e))), self.dynamic)

    def _ask(self, question, jaxpr, here, inside):
        jaxpr = _open(jaxpr)[0]
        key = question, id(jaxpr)
        if key not in self._known:
            self._known[key] = (any(here(e) or any(map(inside, bodies(e))) for e in jaxpr.eqns), jaxpr)  # keeps it, so that its id stays its own
        return self._known[key][0]


class SecondRun:
    """The second run of one jaxpr. `run(args)` -> (results, [(Slot, [numpy arrays, or what `kept` makes of JAX's])] in execution order)."""

    def __init__(self, jaxpr, contents, primitives, kept=np.asarray):
        self._jaxpr, self._contents, self._primitives, self._kept = jaxpr, contents, primitives, kept
        self.closed = set()  # primitives with marks inside that are not looked into (shard_map, pmap)
        self._callbacks, self._heard, self._plan, self._silent, self._inlined = contents.dynamic(jaxpr), [], None, False, 0
        self._compiled = jax.jit(self._traced)

    def run(self, args):
        self._heard = []
        results, values = self._compiled(*args)
        if self._callbacks:
            jax.block_until_ready(results)
            jax.effects_barrier()
            return results, self._heard
        return results, list(_unroll(self._plan, [self._kept(v) if is_array(v) else v for v in values]))

    def _traced(self, *args):
        jaxpr, consts = _open(self._jaxpr)
        results, self._plan, values = self._evaluate(jaxpr, consts, args, ())
        return results, values

    def _evaluate(self, jaxpr, consts, args, chain):
        """(results, plan, values) of a jaxpr traced in the calls `chain` (serials; a negative number for each call inlined on the way)."""
        known, plan, values, made = {}, [], [], makers(jaxpr)
        known.update(zip(jaxpr.constvars, consts))
        known.update(zip(jaxpr.invars, args))
        for equation in jaxpr.eqns:
            operands = [v.val if hasattr(v, "val") else known[v] for v in equation.invars]
            own, outer = serials(equation), tuple(step for step in chain if step >= 0)
            here = chain + (own[len(outer):] if own[:len(outer)] == outer else own)
            results, inner, found = self._step(equation, operands, here, made)
            known.update(zip(equation.outvars, results))
            plan += inner
            values += found
        return [v.val if hasattr(v, "val") else known[v] for v in jaxpr.outvars], plan, values

    def _step(self, equation, operands, here, made):
        name = equation.primitive.name
        if equation.primitive is mark_p:
            first = equation.invars[0] if equation.invars else None
            slot = Slot(here, len(operands), mark=equation.params, source="" if hasattr(first, "val") else source(made.get(first)))
            return operands[:equation.params["outs"]], *self._take(slot, operands)
        inside = any(map(self._contents.recorded, bodies(equation)))
        if inside and name in _CALLS:
            body, consts = _open(next(equation.params[k] for k in _BODY if k in equation.params))
            self._inlined += 1  # a function jitted inside is traced once and called several times: each is a call of its own
            return self._evaluate(body, consts, operands, here + (-self._inlined,))
        if inside and name in ("scan", "while", "cond"):
            results, plan, values = getattr(self, f"_{name}")(equation.params, operands, here)
        else:
            results, plan, values = _bind(equation, operands), [], []
            if inside and any(map(self._contents.marked, bodies(equation))):
                self.closed.add(name)
        if self._primitives:
            own, found = self._take(Slot(here, len(results), name=name, source=source(equation)), results)
            plan, values = plan + own, values + found
        return results, plan, values

    def _take(self, slot, values):
        if self._silent:
            return [], []
        if not self._callbacks:
            return [slot], list(values)
        arrays = [v if is_array(v) else np.zeros((0,)) for v in values]
        io_callback(lambda *xs: self._heard.append((slot, [np.array(x) for x in xs])), None, *arrays, ordered=True)
        return [], []

    def _scan(self, params, operands, here):
        consts, carried = params["num_consts"], params["num_carry"]
        body, body_consts = _open(params["jaxpr"])
        plan = []

        def step(carry, x):
            results, plan[:], values = self._evaluate(body, body_consts, [*operands[:consts], *carry, *x], here)
            return tuple(results[:carried]), (tuple(results[carried:]), values)
        carry, (stacked, values) = jax.lax.scan(step, tuple(operands[consts:consts + carried]), tuple(operands[consts + carried:]), length=params["length"],
                                                reverse=params["reverse"], unroll=params["unroll"])
        return [*carry, *stacked], [Loop(list(plan), params["length"], params["reverse"])], values

    def _while(self, params, operands, here):
        n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
        for_cond, for_body, carry = operands[:n_cond], operands[n_cond:n_cond + n_body], operands[n_cond + n_body:]
        cond, body = _open(params["cond_jaxpr"]), _open(params["body_jaxpr"])

        def goes_on(c):  # conditions take no callbacks
            self._silent = True
            try:
                return self._evaluate(*cond, [*for_cond, *c], here)[0][0]
            finally:
                self._silent = False
        return list(jax.lax.while_loop(goes_on, lambda c: tuple(self._evaluate(*body, [*for_body, *c], here)[0]), tuple(carry))), [], []

    def _cond(self, params, operands, here):
        branches = [lambda *xs, b=_open(branch): tuple(self._evaluate(*b, xs, here)[0]) for branch in params["branches"]]
        return list(jax.lax.switch(operands[0], branches, *operands[1:])), [], []


def _bind(equation, operands):
    """The equation's results, computed as it is."""
    if equation.primitive.name.startswith("debug_") and not equation.outvars:  # a print is heard once
        return []
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ([], bound)
    manager = getattr(getattr(equation, "ctx", None), "manager", None)
    with manager if manager is not None else contextlib.nullcontext():
        results = equation.primitive.bind(*functions, *operands, **params)
    return list(results) if equation.primitive.multiple_results else [results]


def _unroll(plan, values):
    """Values as the outputs have them -> (slot, its values) in execution order."""
    values, position = list(values), 0
    for step in plan:
        mine = values[position:position + step.count]
        position += step.count
        if isinstance(step, Slot):
            yield step, mine
        else:
            for i in reversed(range(step.length)) if step.reverse else range(step.length):
                yield from _unroll(step.plan, [v[i] for v in mine])
