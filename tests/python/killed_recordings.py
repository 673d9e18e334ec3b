"""Recordings to be killed: for each file named on stdin a forked process that says its pid, then after each flush how many event lines the file holds.
A number after the name: it dies before the so manieth change to what a reader may already see. Usage: killed_recordings.py torch|writer|jax."""
import os
import sys
import time

import numpy as np

import parity_probe
from parity_probe import disk, dump_file


def torch_model():
    """A model recorded op by op: weights, views, in-place ops."""
    import torch
    torch._dynamo  # imported by the first recording; not in each child
    torch.set_num_threads(1)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)

        def forward(self, x):
            return self.b(self.a(x).relu_() + x)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block() for _ in range(4)])

    def record(path):
        with torch.no_grad(), parity_probe.record(model, path, level="op"):
            x = torch.ones(4, 16)
            for _ in range(12):
                x = model(x)
                time.sleep(0.015)
    return record


def writer():
    """300 named arrays, 1 MiB now and then."""
    def record(path):
        with parity_probe.Writer(path) as w:
            for k in range(300):
                w.write("x", np.full((1 + k % 13, 20_000 if k % 60 == 59 else 8), k, "f4"), role="weight" if k % 7 == 0 else "output")
                time.sleep(0.001)
    return record


def jax_function():
    """A jitted function with a named one inside, called again and again."""
    import jax
    import jax.numpy as jnp

    def scaled(x, w):
        return jnp.tanh(x @ w) * 0.5

    def forward(weights, x):
        for w in weights:
            x = x + scaled(x, w)
        return x

    def record(path):
        weights = [jnp.asarray(np.random.RandomState(i).randn(8, 8), jnp.float32) for i in range(4)]
        run, x = jax.jit(forward), jnp.ones((2, 8))
        with parity_probe.jax.record(forward, path, functions=[scaled], weights=weights):
            for _ in range(200):
                x = run(weights, x)
    return record


def count_flushed_lines():
    """Says after each flush how many lines the file holds; flushes a hundred times as often as usual."""
    dump_file.FLUSH_SECONDS = 0.01
    honest, lines = dump_file.DumpFile.flush, 0

    def flush(self):
        nonlocal lines
        more = len(self._events)
        honest(self)
        lines += more
        os.write(1, b"%d\n" % lines)
    dump_file.DumpFile.flush = flush


def die_before_change(number):
    """Ends this process at that change as `kill -9` would: nothing more reaches the file. Each event is flushed, so that all depends on the number alone."""
    honest, left = disk.Disk._put, int(number)
    dump_file.FLUSH_SECONDS = 0

    def put(self, address, data):
        nonlocal left
        left -= address < self._settled
        if left < 0:
            os._exit(9)
        honest(self, address, data)
    disk.Disk._put = put


record = {"torch": torch_model, "writer": writer, "jax": jax_function}[sys.argv[1]]()
count_flushed_lines()
for line in sys.stdin:
    begin, begun = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(begin, 1)
        path, *number = line.split()
        if number:
            die_before_change(*number)
        record(path)
        os._exit(0)
    os.write(1, b"%d\n" % child)
    os.write(begun, b".")
    os.waitpid(child, 0)
    os.close(begin), os.close(begun)
    os.write(1, b"gone\n")
