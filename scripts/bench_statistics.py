#!/usr/bin/env python3
"""All statistics of a pair of tensors in memory, beside torch.testing.assert_close, numpy.allclose and numpy.percentile, in one run.

    bench_statistics.py                            fp32 and bf16, 1 KiB to 1 GiB a side
    bench_statistics.py --bytes 1024,268435456     other sizes
    bench_statistics.py --device cuda              tensors that lie on a GPU, beside torch's own functions there
    bench_statistics.py --plot FILE.svg            GB/s over size, drawn by gnuplot
    bench_statistics.py --json FILE                the figures

For each size the programs take turns, so that a busy machine slows all of them down; the fastest turn of each counts. numpy has no bf16: its two get float32 values.
Needs .venv-models.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
OURS = {"reading": "reading_seconds", "sums": "sums_seconds", "all statistics": "statistics_seconds"}


def ours(args, dtype, size):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        subprocess.run([args.program, "bench", "compare", "-q", "--device", args.device, "--dtypes", dtype, "--bytes", str(size), "--repeats", "3", "--threads", str(args.threads),
                        "--json", out], check=True)
        row = json.loads(out.read_text())["rows"][0]
    return {name: row[key] for name, key in OURS.items()}


def pair(dtype, size):
    """(reference, candidate): normal numbers, a thousandth apart."""
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    reference = torch.randn(size // kind.itemsize, generator=torch.Generator().manual_seed(0)).to(kind)
    return reference, (reference.float() + 1e-3 * torch.randn(reference.shape)).to(kind)


def peers_on_gpu(reference, candidate):
    r, c = reference.cuda(), candidate.cuda()
    rank = int(.95 * (r.numel() - 1)) + 1
    return {"torch assert_close": lambda: torch.testing.assert_close(c, r, rtol=1, atol=1), "torch allclose": lambda: torch.allclose(c, r, rtol=1, atol=1),
            "torch kthvalue": lambda: (c.float() - r.float()).abs().kthvalue(rank).values.item()}


def peers(reference, candidate):
    a, b = reference.float().numpy(), candidate.float().numpy()
    return {"torch assert_close": lambda: torch.testing.assert_close(candidate, reference, rtol=1, atol=1),
            "numpy allclose": lambda: np.allclose(a, b, rtol=1, atol=1),
            "numpy percentile": lambda: np.percentile(np.abs(a - b), [95, 99])}


def seconds(work):
    """Of one call: of as many as take a millisecond."""
    start = time.perf_counter()
    work()
    calls = max(1, int(1e-3 / max(time.perf_counter() - start, 1e-9)))
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def measure(args, dtype, size):
    """{name: GB/s over both sides}."""
    reference, candidate = pair(dtype, size)
    others = (peers_on_gpu if args.device.startswith("cuda") else peers)(reference, candidate)
    best = {}
    for _ in range(args.rounds):
        turn = ours(args, dtype, size) | {name: seconds(work) for name, work in others.items()}
        best = {name: min(best.get(name, spent), spent) for name, spent in turn.items()}
    return {name: 2 * size / spent / 1e9 for name, spent in best.items()}


def show(rows, args):
    where = torch.cuda.get_device_name() if args.device.startswith("cuda") else f"{args.threads} threads"
    print(f"GB/s over both sides, {where}, the fastest of {args.rounds} turns; load of the machine {os.getloadavg()[0]:.1f}\n")
    names = list(rows[0]["rates"])
    print(f"| dtype | bytes a side | {' | '.join(names)} | of reading | x assert_close |")
    print("|---|---|" + "---|" * (len(names) + 2))
    for row in rows:
        rates = row["rates"]
        print(f"| {row['dtype']} | {row['bytes']} | {' | '.join(f'{rates[name]:.2f}' for name in names)} | {rates['all statistics'] / rates['reading']:.2f} "
              f"| {rates['all statistics'] / rates['torch assert_close']:.0f} |")


def plot(rows, file):
    names = list(rows[0]["rates"])
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    lines = [f"set terminal svg size 900,{60 + 380 * len(dtypes)} font 'sans,13' background rgb 'white'", f"set output '{file}'", f"set multiplot layout {len(dtypes)},1",
             "set logscale xy", "set xlabel 'bytes a side'", "set ylabel 'GB/s over both sides'", "set key outside right noenhanced", "set grid", "set format x '10^{%T}'"]
    for dtype in dtypes:
        for i, name in enumerate(names):
            lines += [f"$d{i} << EOD"] + [f"{row['bytes']} {row['rates'][name]}" for row in rows if row["dtype"] == dtype] + ["EOD"]
        lines += [f"set title '{dtype}'", "plot " + ", ".join(f"$d{i} with linespoints linewidth 2 title '{name}'" for i, name in enumerate(names))]
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/dev/parity-check"))
    parser.add_argument("--dtypes", default="fp32,bf16", type=lambda text: text.split(","))
    parser.add_argument("--bytes", default="1024,65536,4194304,268435456,1073741824", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--plot", help="write an SVG")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    if not set(args.dtypes) <= {"fp32", "bf16"}:
        sys.exit("bench_statistics.py: --dtypes takes fp32 and bf16")
    torch.set_num_threads(args.threads)
    rows = [dict(dtype=dtype, bytes=size, rates=measure(args, dtype, size)) for dtype in args.dtypes for size in args.bytes]
    show(rows, args)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    if args.plot:
        plot(rows, args.plot)


if __name__ == "__main__":
    main()
