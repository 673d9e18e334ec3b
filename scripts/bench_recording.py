#!/usr/bin/env python3
"""What it costs to keep the lines of source: recordings of a real model with and without, in turns; CPU time, as the machine may be shared.

    .venv-models/bin/python scripts/bench_recording.py [--turns N]

Prints the median CPU seconds of each and the median of the paired differences, at both levels of recording.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "probes" / "python"))
import torch  # noqa: E402

import parity_probe  # noqa: E402

LAYERS, WIDTH, TOKENS, CALLS = 4, 128, 16, 4


def model():
    """A Llama of transformers: small tensors, many ops, so that what is done once an op weighs most."""
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=4, vocab_size=256)
    return LlamaForCausalLM(config).eval(), torch.randint(0, 256, (1, TOKENS))


def seconds(llama, ids, level, lines, folder):
    """CPU seconds of one recording, user and system, all threads."""
    begin = time.process_time()
    with torch.no_grad(), parity_probe.record(llama, folder / "a.h5", level=level, lines=lines):
        for _ in range(CALLS):
            llama(ids)
    return time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=15)
    turns = parser.parse_args().turns
    torch.set_num_threads(1)
    llama, ids = model()
    print(f"Llama, {LAYERS} layers of width {WIDTH}, {TOKENS} tokens, {CALLS} calls; {turns} turns; torch {torch.__version__}")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None) as name:
        folder = pathlib.Path(name)
        for level in ("op", "module"):
            sizes = {}
            for lines in (False, True):  # the first of each is not timed
                seconds(llama, ids, level, lines, folder)
                sizes[lines] = (folder / "a.h5").stat().st_size
            pairs = []
            for turn in range(turns):
                order = (False, True) if turn % 2 else (True, False)
                taken = {lines: seconds(llama, ids, level, lines, folder) for lines in order}
                pairs.append((taken[False], taken[True]))
            off, on = (statistics.median(column) for column in zip(*pairs))
            share = statistics.median((b - a) / a for a, b in pairs)
            print(f"level {level:6}: {off:.3f} s without, {on:.3f} s with lines; median difference {100 * share:+.1f} %; "
                  f"file {sizes[True] / sizes[False] - 1:+.2%}")


if __name__ == "__main__":
    main()
