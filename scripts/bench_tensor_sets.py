#!/usr/bin/env python3
"""`compare` of two tensor sets from the page cache, beside reading both files once, torch.testing.assert_close and numpy.allclose on the same files, in one run.

    bench_tensor_sets.py                           fp32 and bf16, 2 GiB a side, in tensors of 32 MiB
    bench_tensor_sets.py --bytes 268435456         smaller sets
    bench_tensor_sets.py --apart 1e-3              candidates so far off (default: by no more than roundings, so that every tensor passes)
    bench_tensor_sets.py --json FILE               the figures
    bench_tensor_sets.py -- OPTIONS                further options of `parity-check compare`

The programs take turns, so that a busy machine slows all of them down; the fastest turn of each counts. Reading: each thread reads its part of both files into one block of
1 MiB. Of `compare` the whole process is timed, start to report; beside it the largest memory of its own, which leaves out the files' pages in the cache. numpy has no bf16: it
gets float32 values. What fails is looked at once more by compare (histogram, worst elements): with --apart it takes longer. Needs .venv-models, twice --bytes of disk and of page cache.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[1]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
ROUNDING = {"fp32": 5e-8, "bf16": 1e-3}
TENSOR = 1 << 25  # bytes


def write_sets(folder, dtype, size, apart):
    """Two files: normal numbers, and normal numbers times `apart` added."""
    kind, generator = DTYPES[dtype], torch.Generator().manual_seed(0)
    count = max(1, size // TENSOR)
    reference = {f"layers.{i}": torch.randn(size // count // kind.itemsize, generator=generator).to(kind) for i in range(count)}
    save_file(reference, folder / "reference.safetensors")
    for name, value in reference.items():
        reference[name] = (value.float() + apart * torch.randn(value.shape, generator=generator)).to(kind)
    save_file(reference, folder / "candidate.safetensors")
    return folder / "reference.safetensors", folder / "candidate.safetensors"


def read_both(files, threads):
    def part(index):
        block = bytearray(1 << 20)
        for file in files:
            with open(file, "rb", buffering=0) as stream:
                size = file.stat().st_size
                stream.seek(size * index // threads)
                left = size * (index + 1) // threads - stream.tell()
                while left > 0:
                    left -= stream.readinto(memoryview(block)[:left])

    workers = [threading.Thread(target=part, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def pairs(files):
    with safe_open(files[0], "pt") as reference, safe_open(files[1], "pt") as candidate:
        for name in reference.keys():
            yield reference.get_tensor(name), candidate.get_tensor(name)


def assert_close(files):
    for reference, candidate in pairs(files):
        torch.testing.assert_close(candidate, reference, rtol=1, atol=1)


def allclose(files):
    for reference, candidate in pairs(files):
        if not np.allclose(reference.float().numpy(), candidate.float().numpy(), rtol=1, atol=1):
            sys.exit("bench_tensor_sets.py: the two are not alike")


def own_memory(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return max((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), default=0)


def watched(command):
    """(seconds, bytes of memory of its own at most, exit status) of a program, looked at every 5 ms."""
    start, most = time.perf_counter(), 0
    process = subprocess.Popen(command)
    while process.poll() is None:
        most = max(most, own_memory(process.pid))
        time.sleep(.005)
    return time.perf_counter() - start, most, process.returncode


def compare(args, files):
    """Seconds, bytes of memory of its own at most, and the verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        spent, most, status = watched([args.program, "compare", *files, "--quiet", "--threads", str(args.threads), "--json", report, *args.options])
        if status not in (0, 1, 3) or not report.exists():
            sys.exit(f"bench_tensor_sets.py: compare made no report (status {status})")
        counts = {verdict: count for verdict, count in json.loads(report.read_text())["counts"].items() if count}
        return spent, most, counts


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(args, dtype):
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        files = write_sets(Path(folder), dtype, args.bytes, args.apart or ROUNDING[dtype])
        best, memory = {}, 0
        for _ in range(args.rounds):
            spent, most, counts = compare(args, files)
            memory = max(memory, most)
            turn = {"reading both": seconds(lambda: read_both(files, args.threads)), "compare": spent, "torch assert_close": seconds(lambda: assert_close(files)),
                    "numpy allclose": seconds(lambda: allclose(files))}
            best = {name: min(best.get(name, turn[name]), turn[name]) for name in turn}
    return dict(dtype=dtype, bytes=args.bytes, seconds=best, memory=memory, counts=counts)


def show(rows, args):
    print(f"seconds, {args.threads} threads, the fastest of {args.rounds} turns; load of the machine {os.getloadavg()[0]:.1f}\n")
    names = list(rows[0]["seconds"])
    print(f"| dtype | bytes a side | {' | '.join(names)} | compare / reading | x assert_close | own memory, MiB | verdicts |")
    print("|---|---|" + "---|" * (len(names) + 4))
    for row in rows:
        spent = row["seconds"]
        print(f"| {row['dtype']} | {row['bytes']} | {' | '.join(f'{spent[name]:.2f}' for name in names)} | {spent['compare'] / spent['reading both']:.2f} "
              f"| {spent['torch assert_close'] / spent['compare']:.1f} | {row['memory'] / 2**20:.0f} | {', '.join(f'{count} {verdict}' for verdict, count in row['counts'].items())} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/dev/parity-check"))
    parser.add_argument("--dtypes", default="fp32,bf16", type=lambda text: text.split(","))
    parser.add_argument("--bytes", default=1 << 31, type=int, help="a side")
    parser.add_argument("--apart", type=float)
    parser.add_argument("--folder", help="where the files are written (default: the temporary folder)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="write the figures to this file")
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    args.options = options
    if not set(args.dtypes) <= set(DTYPES):
        sys.exit("bench_tensor_sets.py: --dtypes takes fp32 and bf16")
    torch.set_num_threads(args.threads)
    rows = [measure(args, dtype) for dtype in args.dtypes]
    show(rows, args)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
