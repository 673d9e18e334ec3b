"""Runs under another environment, which must hold before PyTorch loads: a helper process for each, started when first asked and kept."""
import atexit
import json
import os
import subprocess
import sys
import tempfile

import torch

import mkl_vendor

_helpers = {}


def _helper(change):
    if change.name not in _helpers or _helpers[change.name].poll() is not None:
        maker = change.environment.get(mkl_vendor.MAKER)
        environment = {**os.environ, **change.environment, **(mkl_vendor.environment(maker) if maker else {}), "PYTHONHASHSEED": "0",
                       "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        _helpers[change.name] = subprocess.Popen([sys.executable, "-m", "zoo", "serve"], env=environment, text=True, stdin=subprocess.PIPE,
                                                 stdout=subprocess.PIPE)
    return _helpers[change.name]


@atexit.register
def _end():
    for helper in _helpers.values():
        helper.kill()   # it has nothing to finish
        helper.wait()


def lies(change):
    """Does the change need another environment than this process has?"""
    return change is not None and any(os.environ.get(k) != v for k, v in change.environment.items())


def asked(what, entry, dtype, change):
    """What the function `what` (`answers` in `serve`) gives of the entry's plain run in the change's environment."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "answer.pt")
        helper = _helper(change)
        helper.stdin.write(json.dumps([what, entry.name, dtype, change.name, file]) + "\n")
        helper.stdin.flush()
        answer = helper.stdout.readline().strip()
        if answer != "done":
            raise RuntimeError(f"the helper for {change.name!r} failed: {answer or 'it ended'}")
        return torch.load(file, weights_only=False)


def serve():
    """Answers requests (JSON lines on standard input) until there are no more."""
    from . import produce, roundings
    from .benign import CHANGES
    from .catalogue import ENTRIES

    answers = {"boundaries": produce.boundaries, "before_bias": roundings.before_bias}
    for line in sys.stdin:
        what, name, dtype, change, file = json.loads(line)
        try:
            torch.save(answers[what](ENTRIES[name], dtype, change=CHANGES[change]), file)
            answer = "done"
        except Exception as e:   # the asking process says which case it was
            answer = f"{type(e).__name__}: {e}".replace("\n", " ")
        try:
            print(answer, flush=True)
        except BrokenPipeError:   # whoever asked was stopped
            os._exit(1)
    return 0
