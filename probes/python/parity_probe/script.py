"""Runs somebody's script and records one model in it.

The model is not known before it is called, so torch.nn.Module.__call__ is watched from the moment the script imports torch (not earlier: a script may set
environment variables first). Only the model's calls are recorded; what the script computes between them comes in as inputs.
"""
import importlib.abc
import importlib.util
import io
import os
import runpy
import sys
import threading
import traceback
import types

from .errors import Error
from .writer import check_path

_MODULE = "torch.nn.modules.module"


class Watch:
    """Finds the model and records its calls. `wanted`: class name, expression, or None for the first module called."""

    def __init__(self, path, level, wanted):
        self.path, self.level, self.wanted = path, level, wanted
        self.recorder, self.calls, self.others, self._depth, self._recording, self._whole = None, 0, [], 0, False, True
        self._thread = threading.get_ident()

    def install(self, module_class):
        """Wraps module_class.__call__ (torch.nn.Module's)."""
        original = module_class.__call__

        def call(module, *args, **kwargs):
            if self._recording or threading.get_ident() != self._thread:
                return original(module, *args, **kwargs)
            if self._is_wanted(module):
                return self._record(module, args, kwargs)
            if self._depth == 0:
                self._remember(type(module).__name__)
            self._depth += 1
            try:
                return original(module, *args, **kwargs)
            finally:
                self._depth -= 1
        module_class.__call__ = call

    def _is_wanted(self, module):
        from .module_calls import unwrap
        module = unwrap(module)
        if self.recorder is not None:
            return module is self.recorder.model
        return self.wanted is None or self.wanted in (type(module).__name__, f"{type(module).__module__}.{type(module).__qualname__}") or \
            module is self._expression()

    def _expression(self):
        try:
            from .module_calls import unwrap
            return unwrap(eval(self.wanted, dict(vars(sys.modules["__main__"]))))
        except Exception:  # not defined yet, or no expression at all: nothing matches
            return None

    def _remember(self, name):
        if name not in self.others:
            self.others.append(name)

    def _record(self, module, args, kwargs):
        from .recorder import Recorder
        if self.recorder is None:
            self.recorder = Recorder(module, self.path, self.level)
        self._recording = True
        self.calls += 1
        self.recorder.attach()
        try:
            return module(*args, **kwargs)
        except BaseException:
            self._whole = False
            raise
        finally:
            self.recorder.detach()
            self._recording = False

    def close(self):
        """Ends the recording, complete unless an exception left one of its calls; raises parity_probe.Error when the model never came."""
        if self.recorder is not None:
            self.recorder.close(complete=self._whole)
            return
        if self.wanted is None or not self.others:
            raise Error("nothing recorded: the script called no torch.nn.Module")
        raise Error(f"nothing recorded: no module called matches --model {self.wanted}; the script called {', '.join(self.others)}")


class _OnImport(importlib.abc.MetaPathFinder):
    """Calls `then(module)` once torch.nn.modules.module has been imported."""

    def __init__(self, then):
        self._then = then

    def find_spec(self, name, path, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            self._then(module)
        spec.loader.exec_module = exec_module
        return spec


def _run(options):
    """The script, as `python script.py` runs it."""
    sys.argv = [options.script, *options.args]
    if options.is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = options.script, __builtins__
    with io.open_code(options.script) as f:
        code = compile(f.read(), options.script, "exec", dont_inherit=True)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def record_script(options):
    """Runs options.script and writes options.output. Returns the script's exit status; 2 (by parity_probe.Error) when it called no such model."""
    check_path(options.output)
    watch = Watch(options.output, options.level, options.model)
    if _MODULE in sys.modules:
        watch.install(sys.modules[_MODULE].Module)
    else:
        sys.meta_path.insert(0, _OnImport(lambda module: watch.install(module.Module)))
    status = 0
    try:
        _run(options)
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
    except BaseException as e:
        trace = e.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>", runpy.__file__):
            trace = trace.tb_next
        traceback.print_exception(type(e), e, trace)
        status = 130 if isinstance(e, KeyboardInterrupt) else 1
    if watch.recorder is not None or status == 0:
        watch.close()
    if watch.recorder is not None:
        rest = [name for name in watch.others if name != type(watch.recorder.model).__name__]
        print(f"parity_probe: recorded {watch.calls} call{'s' if watch.calls != 1 else ''} of {type(watch.recorder.model).__name__} in {options.output}"
              + (f"; not recorded: {', '.join(rest)} (choose with --model)" if rest else ""), file=sys.stderr)
    return status
