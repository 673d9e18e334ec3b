"""Runs entries and writes recordings: the reference by the recorder, candidates as foreign ports would."""
import dataclasses
import re

import torch

from selftest_models import capture
from selftest_models.family import Patches
from selftest_models.pairs import THREADS

from . import elsewhere
from .benign import put_around


class Refused(ValueError):
    """A case that would show nothing, or something else than it says."""


def run(entry, dtype, listen, fault=None, change=None):
    """listen(model) with the fault in a fresh model and the benign change around it. `fault`: (operator, path)."""
    torch.set_num_threads(THREADS)
    model = entry.build(dtype, change.attention if change else None)
    with torch.no_grad(), Patches() as patch:
        if fault:
            operator, path = fault
            operator.put_in(model, path, patch)
        if change:
            put_around(change, model, patch)
        return listen(model)


def boundaries(entry, dtype, fault=None, change=None, plain=None):
    """Every module output of one run; in a process of its own where the change is one of the environment."""
    if elsewhere.lies(change):
        return elsewhere.asked("boundaries", entry, dtype, change)

    def listen(model):
        if change and change.listen:
            return change.listen(entry, model, dtype, plain)
        return capture.boundaries(model, lambda m: entry.run(m, dtype))
    return run(entry, dtype, listen, fault, change)


def record(path, entry, dtype, level, fault=None, change=None):
    """The whole program, by the recorder."""
    import parity_probe

    def listen(model):
        with parity_probe.record(model, str(path), level=level):
            entry.run(model, dtype)
    run(entry, dtype, listen, fault, change)


def write(path, entry, found, wanted=None):
    """Module outputs, each distinct tensor once; all calls of a path where one of them is distinct (a path's calls count from 0)."""
    distinct = {b.path for b in found if not b.again}
    capture.write(path, [dataclasses.replace(b, again=b.again and b.path not in distinct) for b in found], wanted, model=entry.name, producer="zoo port")


def of_blocks(found):
    """What a port with outputs of its blocks alone records: members of module lists, and the model's results."""
    return [b for b in found if capture.is_result(b) or re.search(r"(^|\.)\d+(\[0\])?$", b.path)]


def decides_otherwise(found, plain):
    """Paths of integer results that differ: rounding took another branch (top-k routing)."""
    right = {b.key: b.value for b in plain}
    return [b.path for b in found if b.key in right and not b.value.is_floating_point() and capture.changed(b.value, right[b.key])]
