"""A C++ program that streams (tests/probe/stream_port.cpp), and what the tests of it share: what it is told to do, and how it is watched."""
import functools
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_cpp_probe import ROOT, build

from parity_probe.arrays import bits

SECONDS = 120


FOLDER = tempfile.TemporaryDirectory(prefix="stream_port.")  # as long as the tests run: they compile once


@functools.cache
def program():
    return build(ROOT / "tests/probe/stream_port.cpp", Path(FOLDER.name) / "stream_port", "-O1")


class Steps:
    """What a stream_port is to do; tensors lie beside it, in files."""

    def __init__(self, folder):
        self.folder, self.lines = folder, []

    def add(self, *lines):
        self.lines += lines
        return self

    def tensor(self, path, array, role="output", flip=False):
        dtype, raw = bits(array, path)
        if flip:
            raw = raw.copy()
            raw.reshape(-1).view(np.uint8)[raw.size // 2 * raw.itemsize] ^= 1  # the last bit of one element
        file = self.folder / f"{len(self.lines)}.raw"
        file.write_bytes(raw.tobytes())
        return self.add(" ".join(["tensor", path, role, dtype, str(file), *map(str, raw.shape)]))

    def file(self):
        (self.folder / "steps").write_text("".join(line + "\n" for line in self.lines))
        return str(self.folder / "steps")


@pytest.fixture
def start(tmp_path):
    """Starts a stream_port: start(address, steps); a list of steps is made a file."""
    started = []

    def start(address, steps, *level, **environment):
        file = (steps if isinstance(steps, Steps) else Steps(tmp_path).add(*steps)).file()
        started.append(subprocess.Popen([str(program()), address, file, *level], env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """(exit status, stdout, stderr)."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def lines_so_far(process, got):
    """Collects what `process` prints."""
    thread = threading.Thread(target=lambda: got.extend(process.stdout), daemon=True)
    thread.start()
    return thread


def settled(look, seconds=30):
    """The number `look` gives once it has not changed for half a second."""
    last, since, end = look(), time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end and time.monotonic() - since < .5:
        time.sleep(.02)
        if look() != last:
            last, since = look(), time.monotonic()
    return last
