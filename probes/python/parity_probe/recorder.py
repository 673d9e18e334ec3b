"""Recorder: writes the ATen ops of a model run down as a program (a TorchDispatchMode), with module calls as boundaries.

Recording must neither change nor stop the model: values are only read; a failure to write ends the recording, not the forward pass, and is raised when the
block ends.
"""
import contextlib
import os
import threading
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

from .errors import Error
from .module_calls import ModuleCalls, ModulePaths, unwrap
from .op_facts import OpFacts
from .program import Program
from .shards import Shard, settle
from .sketch_program import SketchProgram
from .version import __version__
from .writer import check_path

LEVELS = ("op", "module", "sketch", "stats")
WITHOUT_OPS = ("sketch", "stats")
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_running = threading.local()


def _stack():
    if not hasattr(_running, "stack"):
        _running.stack = []
    return _running.stack


def point(name, tensor):
    """See parity_probe.point."""
    for recorder in _stack():
        recorder.point(name, tensor)


class Recorder:
    """What `parity_probe.record` returns: enter it to record.

    The file is made under its final name when the first tensor arrives, and replaces an older one only then; a block in which nothing is called raises
    parity_probe.Error and leaves the older one alone. While it grows (and for ever, if the process dies or an exception leaves the block) its
    attribute `complete` is 0 and it can be read up to its last flush, about a second ago. A final name at once, not `.partial`: whoever looks for the file after
    a crash looks there.
    """

    def __init__(self, model, path, level="op", lines=True, shard=None):
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"parity_probe.record: expected a torch.nn.Module, got {type(model).__name__}")
        if level not in LEVELS:
            raise ValueError(f"parity_probe.record: level must be one of {', '.join(LEVELS)}, not {level!r}")
        self.path, self.model, self.error = os.fspath(path), unwrap(model), None
        check_path(self.path)
        shard = Shard.of(shard)
        if shard is not None and level in WITHOUT_OPS:
            raise ValueError(f"parity_probe.record: ranks at level {level} are written by Writer(level={level!r}).write(shard=...)")
        self._paths = ModulePaths(self.model)
        producer = f"parity_probe.torch {__version__}"
        self._program = SketchProgram(self.path, self.model, level, producer, lines) if level in WITHOUT_OPS else \
            Program(self.path, self.model, level, producer, self._paths, lines, shard)
        self._mode, self._exits = _OpMode(self) if level not in WITHOUT_OPS else contextlib.nullcontext(), None

    def __enter__(self):
        self.attach()
        return self

    def __exit__(self, kind, exception, traceback):
        self.detach()
        try:
            self.close(complete=kind is None)
        except Error:
            if kind is None:
                raise
        return False

    def attach(self):
        """Starts to listen, on this thread. `attach` and `detach` may be repeated: what happens in between is then not recorded."""
        self._exits = contextlib.ExitStack()
        self._exits.enter_context(torch.compiler.set_stance("force_eager"))  # compiled code would run past the dispatch mode
        self._exits.enter_context(ModuleCalls(self._paths, self._begin, self._end))
        self._exits.enter_context(self._mode)
        _stack().append(self)

    def detach(self):
        """Stops listening."""
        _stack().remove(self)
        self._exits.close()

    def close(self, complete=True):
        """Ends the file. Raises parity_probe.Error when recording failed on the way, or when there was nothing to record."""
        if self.error is None:
            try:
                self._program.finish(complete)
            except Error as e:
                self.error = e
        if self.error is not None:
            self._program.abandon()
            raise self.error

    def point(self, name, tensor):
        """Records `tensor` as boundary `name` (see parity_probe.point)."""
        if isinstance(tensor, torch.Tensor):
            self._guard(self._program.point, str(name), tensor)

    def _begin(self, module, path, args, kwargs):
        return self._guard(self._program.begin_call, module, path, args, kwargs)

    def _end(self, token, result, error):
        if token is not None:
            self._guard(self._program.end_call, token, result, error)

    def _guard(self, step, *args, **kwargs):
        """Runs a step of the recording; its failure ends the recording, never the model."""
        if self.error is not None:
            return None
        try:
            with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunctionSubclass():
                return step(*args, **kwargs)
        except Exception as e:
            self.error = e if isinstance(e, Error) else Error(f"{self.path}: recording failed: {type(e).__name__}: {e}")
            self.error.__cause__ = None if e is self.error else e
            warnings.warn(f"recording stopped, the model runs on: {self.error}", stacklevel=2)
            return None


class _OpMode(TorchDispatchMode):
    """Sees every ATen op below autograd and autocast."""
    supports_higher_order_operators = True
    _facts = {}

    def __init__(self, recorder):
        super().__init__()
        self._recorder, self._program = recorder, recorder._program

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        recorder = self._recorder
        if recorder.error is not None or torch._C._get_dispatch_mode(_FAKE) is not None:  # without values: DTensor asks what shapes an op has
            return op(*args, **kwargs)
        if any(issubclass(t, torch.Tensor) and t is not torch.Tensor for t in types) and any(
                is_traceable_wrapper_subclass(t) for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)):
            return NotImplemented  # the subclass takes the op apart, and its parts come here
        facts = self._facts.get(op)
        if facts is None:
            facts = self._facts[op] = OpFacts(op)
        if facts.composite(args):
            with self:
                return op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        call = recorder._guard(self._program.before_op, facts, args, kwargs)
        result = op(*args, **kwargs)
        if op.namespace in ("c10d", "_c10d_functional"):
            recorder._guard(settle, op, result)
        if call is not None:
            recorder._guard(self._program.after_op, facts, args, kwargs, result, call)
        return result
