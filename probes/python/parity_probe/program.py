"""Program: turns what happens (ops, module calls, points) into the events and values of FORMAT.md."""
import sys
import weakref

import torch

from . import arguments, boundaries, position_tables, provenance, shards, weight_names
from .dump_file import DumpFile, link_name
from .identity import ValueTable
from .lines import Lines
from .torch_bits import dtype_name, shape, storable, torch_bits


class _Frame:
    """A running module call."""
    __slots__ = ("id", "path", "module", "root_call")

    def __init__(self, id_, path, module, root_call):
        self.id, self.path, self.module, self.root_call = id_, path, module, root_call


class Program:
    """The recording of one model; every method runs with dispatch modes off and may raise (the recorder then stops)."""

    def __init__(self, path, model, level, producer, paths, lines=True, shard=None):
        self._lines = Lines(lambda number, text: self.file.event(e="note", source_line=number, text=text)) if lines else None
        self._path, self._model, self._level, self._producer, self._paths, self._shard = path, model, level, producer, paths, shard
        self._file, self._table, self._frames = None, ValueTable(), []
        self._serial, self._calls, self._points = 0, {}, {}
        self._names = {}  # id(tensor) -> (weak reference, {weight name: is it in the state dict?})

    @property
    def file(self):
        """The file, made when first needed: provenance then describes the run, and an older recording survives until there is a new one."""
        if self._file is None:
            about = provenance.collect_torch(self._model)
            if self._shard is not None:
                about["shard"] = self._shard.json()
            self._file = DumpFile(self._path, self._level, self._producer, type(self._model).__name__, about)
            for name, t, kept in weight_names.of_model(self._model):
                self._add_name(name, shards.local(t)[0], kept)
        return self._file

    # values

    def _add_name(self, name, t, kept):
        ref, names = self._names.get(id(t), (None, None))
        if ref is None or ref() is not t:
            ref, names = self._names[id(t)] = (weakref.ref(t), {})
        names.setdefault(name, kept)

    def _weight_names(self, t):
        ref, names = self._names.get(id(t), (None, None))
        if ref is not None and ref() is t:
            return names
        for frame in self._frames:  # an attribute set since; only modules now running can be the reason
            for name, found, kept in weight_names.of_module(frame.module, frame.path):
                if found is t:
                    self._add_name(name, t, kept)
        ref, names = self._names.get(id(t), (None, None))
        return names if ref is not None and ref() is t else {}

    def _leaf(self, t, names=()):
        """A tensor no recorded op made: stored as it is now. Shares it memory with a known value, replay can make it a view of that."""
        file, memory = self.file, self._table.memory(t)
        value = self._table.add(t, as_leaf=True)
        weights = self._weight_names(t)
        links = [("weights", n) for n in weights] + list(names)
        alias = self._alias(t, memory)
        key = None if alias and memory.uninitialised else self._store(t, value)
        if key is not None:
            for group, n in links:
                file.link(group, n, key)
        file.event(e="leaf", v=value.id, k=key, d=dtype_name(t.dtype), s=shape(t), names=[f"{group}/{link_name(n)}" for group, n in links],
                   **({"computed": True} if weights and not names and self._is_computed(t, weights) else {}), **({"alias": alias} if alias else {}))
        return value

    @staticmethod
    def _is_computed(t, weights):
        """When the model was built: in no state dict, or a table of positions in one."""
        return not any(weights.values()) or position_tables.is_table(t)

    @staticmethod
    def _alias(t, memory):
        """Where `t` lies in the value that brought its memory into the program; None when it does not lie there as a whole."""
        if memory is None or memory.root is None or memory.dtype != t.dtype or t.is_nested:
            return None
        first = t.storage_offset()
        last = first + (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1 if t.numel() else 0)
        if memory.first <= first and last <= memory.last:
            return {"v": memory.root, "stride": list(t.stride()), "offset": first - memory.first}
        return None

    def _value_of(self, t, names=()):
        value = self._table.find(t)
        return value if value is not None else self._leaf(t, names)

    def _store(self, t, value):
        """Writes the present version of `t` unless it is there; its key, None when it has no elements to write."""
        if value.stored != value.version:
            if not storable(t):
                return None
            self.file.value(value.key, *torch_bits(t))
            value.stored = value.version
        return value.key

    def _json(self, t, value, store, name=None):
        out = {"v": value.id, "d": dtype_name(t.dtype), "s": shape(t)}
        if store or value.stored == value.version:
            key = self._store(t, value)
            if key is not None:
                out["k"] = key
        if name is not None:
            out["n"] = name
        return out

    def _boundary(self, t, name, group=None):
        """JSON of a tensor at a module boundary, stored, and linked under `group` (inputs/0, ...) when it is the model's own."""
        t, spec = shards.local(t)
        value = self._value_of(t, [(group, name)] if group and group.startswith("inputs") else ())
        self._reveal(t, value)
        out = self._json(t, value, store=True, name=name)
        if spec is not None and self._shard is not None:
            out["shard"] = shards.placements(spec, self._shard.mesh)
        if group and "k" in out:
            self.file.link(group, name, out["k"])
        return out

    def _reveal(self, t, value):
        """Memory from `empty` that is read though no op wrote to it was written by somebody PyTorch does not see (a Triton kernel, numpy): note its contents."""
        memory = value.memory
        if memory is None or not memory.uninitialised:
            return
        memory.uninitialised = False
        memory.writes += 1
        self.file.event(e="op", op="parity_probe::write", **{"in": self._inside()}, args=[{"v": value.id}], kwargs={}, out=[], opaque="custom",
                        writes=[self._json(t, value, store=True)])

    def _inside(self):
        return self._frames[-1].id if self._frames else -1

    # ops

    def before_op(self, facts, args, kwargs):
        """Arguments as JSON, taken before the op can change them; leaves among them are stored."""
        written = facts.written(args, kwargs)

        def tensor(t):
            value = self._value_of(t)
            if facts.reads and not facts.uninitialised and not any(t is w for w in written):
                self._reveal(t, value)
            return {"v": value.id}
        encoded = [arguments.encode(a, tensor) for a in args], {k: arguments.encode(v, tensor) for k, v in kwargs.items()}
        if facts.as_strided:
            self._shift(facts, args, kwargs, encoded)
        return encoded, written

    def _shift(self, facts, args, kwargs, encoded):
        """as_strided's absolute offset counts from the storage's begin; in replay a leaf's storage begins at the leaf."""
        offset, memory = facts.argument("storage_offset", args, kwargs), self._table.memory(args[0])
        if offset is None or memory is None or not memory.first:
            return
        position = facts.positions["storage_offset"]
        where = (encoded[0], position) if position < len(args) else (encoded[1], "storage_offset")
        where[0][where[1]] = int(offset) - memory.first

    def after_op(self, facts, args, kwargs, result, call):
        """Writes the op's event, its results where the level or opacity asks for them, and counts what it wrote to."""
        (args_json, kwargs_json), written = call
        results = _flat(result)
        tensors = [t for t in results if isinstance(t, torch.Tensor)]
        reason = facts.opaque(args, kwargs, tensors)
        self._count_writes(written, reason)
        store = reason not in (None, "uninitialised") or reason is None and (self._level == "op" or facts.sized_by_values(args, kwargs))
        inputs = self._memories(args, kwargs)
        event = {"e": "op", "op": facts.name, "in": self._inside(), "args": args_json, "kwargs": kwargs_json, "out": [], **self._source()}
        view = False
        for i, t in enumerate(results):
            if not isinstance(t, torch.Tensor):
                event["out"].append(None)
                continue
            value, mutated = self._table.find(t), any(t is w for w in written)
            aliases = not mutated and (value is not None or id(self._table.memory(t)) in inputs)
            if value is None:
                value = self._table.add(t, as_leaf=reason not in (None, "uninitialised") and not aliases)
                if reason == "uninitialised" and value.memory is not None and not aliases:
                    value.memory.uninitialised = True
            view = view or aliases
            event["out"].append(self._json(t, value, store and i not in facts.scratch and not (aliases and reason is None)))
        silent = [t for t in written if not any(t is r for r in tensors)]
        if silent:
            event["writes"] = [self._json(t, self._table.find(t), store) for t in silent]
        if reason is not None:
            event["opaque"] = reason
        if view:
            event["view"] = True
        self.file.event(**event)

    def _source(self):
        """Keys of an op's event that say where it was called; this, after_op, _guard and __torch_dispatch__ are the innermost frames."""
        if self._lines is None:
            return {}
        line, library = self._lines.of_frame(sys._getframe(4))
        return {key: number for key, number in (("src", line), ("lib", library)) if number is not None}

    def _count_writes(self, written, reason):
        counted = set()
        for t in written:
            value = self._table.known(t)
            memory = value.memory
            if memory is not None and id(memory) not in counted:
                counted.add(id(memory))
                memory.writes += 1
                memory.uninitialised = reason == "uninitialised"
            self._table.refresh(t, value)

    def _memories(self, args, kwargs):
        return {id(m) for t in _flat([args, list(kwargs.values())]) if isinstance(t, torch.Tensor) for m in (self._table.memory(t),) if m is not None}

    # module calls and points

    def begin_call(self, module, path, args, kwargs):
        """Event `call`; returns the frame for `end_call`."""
        call = self._calls[path] = self._calls.get(path, -1) + 1
        frame = _Frame(self._serial, path, module, call if path == "" else None)
        self._serial += 1
        tensors, literals = boundaries.inputs(module, args, kwargs)
        self.file  # the weights' names must be known before the first leaf
        group = f"inputs/{call}" if path == "" else None
        inputs = [self._boundary(t, name, group) for name, t in tensors]
        kind = next((t.device.type for _, t in tensors), "cpu")
        autocast = dtype_name(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else None
        self.file.event(e="call", id=frame.id, path=path, call=call, parent=self._inside(), **{"class": type(module).__name__}, inputs=inputs, literals=literals,
                        autocast=autocast, grad=torch.is_grad_enabled())
        self._frames.append(frame)
        return frame

    def end_call(self, frame, result, error):
        """Event `ret`. Calls still open inside `frame` were left by an exception nobody reported."""
        while self._frames and self._frames[-1] is not frame:
            self.file.event(e="ret", id=self._frames.pop().id, outputs=[], error="left without returning")
        if error is not None:
            self.file.event(e="ret", id=frame.id, outputs=[], error=f"{type(error).__name__}: {error}"[:1000])
        else:
            group = f"outputs/{frame.root_call}" if frame.root_call is not None else None
            self.file.event(e="ret", id=frame.id, outputs=[self._boundary(t, name, group) for name, t in boundaries.outputs(result)])
        if self._frames:
            self._frames.pop()

    def point(self, name, t):
        """Event `point`."""
        call = self._points[name] = self._points.get(name, -1) + 1
        self.file.event(e="point", path=name, call=call, role="output", **self._boundary(t, None))

    def finish(self, complete):
        """Stores the weights no op has used, so that all can be audited, and closes. Raises parity_probe.Error when nothing was recorded."""
        if self._file is None:
            if complete:
                from .errors import Error
                raise Error(f"{self._path}: nothing was recorded: the model was not called inside the block")
            return
        if complete:
            for ref, _ in list(self._names.values()):
                t = ref()
                if t is not None and storable(t) and self._table.find(t) is None:
                    self._leaf(t)
        self._file.close(complete)

    def abandon(self):
        """After an error: lets go of the file."""
        if self._file is not None:
            self._file.abandon()


def _flat(result):
    """Results in order, tensor lists opened up."""
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in _flat(r)]
    return [result]
