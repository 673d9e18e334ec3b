"""Lines of source: where in the user's code something was computed, as text for people: "transformers/models/llama/modeling_llama.py:312 in forward".

The user's frame is the innermost one outside libraries that only compute (PyTorch, JAX, einops), the standard library and this package. File names are
those below the folder they were imported from, so that no recording tells whose home directory it was made in. Needs neither torch nor jax.
"""
import functools
import os
import sys
import sysconfig

# Told apart by the first part of the name; what they call is the user's choice, where they compute is theirs.
_LIBRARIES = {"torch", "functorch", "einops", "jax", "jaxlib", "flax", "equinox", "haiku"}
# How an op reaches the recorder, not where it comes from.
_WAYS = ("torch/_compile.py", "torch/_dynamo/", "torch/_ops.py", "torch/utils/_python_dispatch.py", "torch/utils/_contextlib.py")
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = tuple({os.path.abspath(p) + os.sep for p in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")) if p})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
USER, LIBRARY, SKIPPED = "user", "library", "skipped"
LONGEST = 200


def file_name(path):
    """`path` below the longest entry of sys.path that it lies in, with "/"; its last part alone where it lies in none."""
    if path.startswith("<"):  # made at run time ("<stdin>", "<eval_with_key>.3 from /home/…")
        return path.split(" ")[0]
    return _below(path, tuple(sys.path), os.getcwd())


@functools.lru_cache(maxsize=4096)
def _below(path, entries, folder):
    """A model has lines by the hundred in a dozen files: once a file, as making each entry absolute was most of what keeping the lines cost."""
    path, best = os.path.abspath(path), ""
    for entry in entries:
        entry = os.path.abspath(entry or folder).rstrip(os.sep) + os.sep
        if len(best) < len(entry) > 1 and path.startswith(entry):
            best = entry
    return path[len(best):].replace(os.sep, "/") if best else os.path.basename(path)


def kind_of(path):
    """USER, LIBRARY or SKIPPED: whose code the file at `path` is."""
    if path.startswith("<frozen") or path.startswith(_OWN) or path.startswith(_STANDARD) and not any(part in path for part in _INSTALLED):
        return SKIPPED
    name = file_name(path)
    if name.startswith(_WAYS):
        return SKIPPED
    return LIBRARY if name.split("/")[0] in _LIBRARIES else USER


def text(path, line, function):
    """Text for one line; of names that somebody made very long the beginning."""
    return f"{file_name(path)[-LONGEST:]}:{line} in {function[:LONGEST]}"


class Lines:
    """Numbers the lines of one recording. Once a place in the code is known, `of_frame` costs a look-up a frame, about 4 us an op: scripts/bench_recording.py has the share of a recording."""

    def __init__(self, found):
        """`found(number, text)` is called for each line when it first comes."""
        self._found, self._codes, self._kept, self._numbers = found, {}, [], {}

    def of_frame(self, frame):
        """(number of the innermost user frame's line, number of the library's innermost line within it) from `frame` outwards; None for what there is not."""
        library, codes = None, self._codes
        while frame is not None:
            code = frame.f_code
            known = codes.get(id(code), False)
            if known is False:
                known = self._learn(code)
            if known is not None:  # not skipped
                user, numbers = known
                if user or library is None:
                    number = numbers.get(frame.f_lasti)
                    if number is None:
                        number = numbers[frame.f_lasti] = self.number(text(code.co_filename, frame.f_lineno, code.co_name))
                    if user:
                        return number, library
                    library = number
            frame = frame.f_back
        return None, library

    def _learn(self, code):
        """By id, as the hash of code reads all of it; the code is kept, so that the id stays its own."""
        self._kept.append(code)
        kind = kind_of(code.co_filename)
        known = self._codes[id(code)] = None if kind is SKIPPED else (kind is USER, {})
        return known

    def number(self, line):
        """The number of a line's text."""
        number = self._numbers.get(line)
        if number is None:
            number = self._numbers[line] = len(self._numbers)
            self._found(number, line)
        return number


def of_caller(frame, level=1):
    """Text of the `level`-th user frame, 1 is the innermost, from `frame` outwards; of the last one where there are fewer, "" when there is none."""
    found = None
    while frame is not None and level > 0:
        if kind_of(frame.f_code.co_filename) is USER:
            found, level = frame, level - 1
        frame = frame.f_back
    return text(found.f_code.co_filename, found.f_lineno, found.f_code.co_name) if found is not None else ""


def of_call(function, frame):
    """For a call of `function` that has returned: where it is defined when that is the user's code, else the user's line that called it."""
    for _ in range(16):
        function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if code is not None and kind_of(code.co_filename) is USER:
        return text(code.co_filename, code.co_firstlineno, code.co_name)
    return of_caller(frame)
