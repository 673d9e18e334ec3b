"""SketchProgram: what a recording of level sketch or stats keeps of a run: no ops, only sketches or statistics of the model's inputs, weights and every module's results."""
import sys

from . import blocks, boundaries, lines, native, provenance, sketch, torch_stats, weight_names
from .dump_file import DumpFile
from .repeats import Repeats
from .torch_bits import dtype_name, shape, storable, torch_bits


class _Frame:
    """A running module call."""
    __slots__ = ("path", "call", "type", "forward")

    def __init__(self, path, call, type_):
        self.path, self.call, self.type, self.forward = path, call, type_.__name__, type_.forward


class SketchProgram:
    """Stands in for Program: every method runs with dispatch modes off and may raise (the recorder then stops)."""

    def __init__(self, path, model, level, producer, lines_=True):
        self._lines = lines_
        self._path, self._model, self._level, self._producer = path, model, level, producer
        self._file, self._next, self._calls, self._points = None, 0, {}, {}
        # Where the library makes statistics, to make them anew costs less than to add up the words of all tensors.
        self._repeats = None if level == "stats" and native.library() else Repeats(blocks.LARGE if level == "stats" else blocks.BLOCK)

    @property
    def file(self):
        if self._file is None:
            self._file = DumpFile(self._path, self._level, self._producer, type(self._model).__name__, provenance.collect_torch(self._model))
        return self._file

    def _write(self, t, path, call, role, **more):
        value, self._next = self._next, self._next + 1
        if not storable(t):
            about = {"d": dtype_name(t.dtype), "s": shape(t)}
        elif self._repeats and role == "output" and t.numel() >= blocks.BLOCK and t.device.type == "cpu" and t.is_contiguous():
            about = self._repeats.describe(t, lambda sums: self._describe(t, value, role, sums))
        else:
            about = self._describe(t, value, role)
        self.file.event(e="point", path=path, call=call, role=role, v=value, **about, **more)

    def _describe(self, t, value, role, sums=None):
        if self._level == "stats":
            return torch_stats.describe(t, sums)
        return sketch.record(self.file, str(value), *torch_bits(t)[:2], role, sums=sums)

    def begin_call(self, module, path, args, kwargs):
        """Describes the weights (once) and the arguments of the model itself; returns the frame for `end_call`."""
        call = self._calls[path] = self._calls.get(path, -1) + 1
        if path == "":
            if call == 0:
                for name, t, _ in weight_names.of_model(self._model):
                    self._write(t, name, 0, "weight")
            for name, t in boundaries.inputs(module, args, kwargs)[0]:
                self._write(t, name, call, "input")
        return _Frame(path, call, type(module))

    def end_call(self, frame, result, error):
        """Describes the results. No op is seen at this level: the line is that of the module's own `forward`, or the call's when that is PyTorch's."""
        if error is not None:
            self.file.event(e="note", text=f"{frame.path or 'the model'}, call {frame.call}: {type(error).__name__}: {error}"[:1000])
            return
        source = lines.of_call(frame.forward, sys._getframe(2)) if self._lines else ""
        for i, (_, t) in enumerate(boundaries.outputs(result)):
            self._write(t, f"{frame.path}[{i}]" if i else frame.path, frame.call, "output", **{"class": frame.type}, **({"src": source} if source else {}))

    def point(self, name, t):
        """Describes a tensor that the model named."""
        call = self._points[name] = self._points.get(name, -1) + 1
        self._write(t, name, call, "output")

    def finish(self, complete):
        """Closes. Raises parity_probe.Error when nothing was recorded."""
        if self._file is not None:
            self._file.close(complete)
        elif complete:
            from .errors import Error
            raise Error(f"{self._path}: nothing was recorded: the model was not called inside the block")

    def abandon(self):
        """After an error: lets go of the file."""
        if self._file is not None:
            self._file.abandon()
