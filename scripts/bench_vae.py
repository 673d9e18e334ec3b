#!/usr/bin/env python3
"""Decoding a clip with Wan's video autoencoder in C++ beside diffusers' AutoencoderKLWan in PyTorch eager, in one run: seconds, ratio, peak memory.

    bench_vae.py                          9 frames of 544x960, fp32, 2 threads
    bench_vae.py --latent 3,17,30         9 frames of 136x240
    bench_vae.py --dtype bf16 --rounds 3

Each side runs in its own process with random weights in the true widths, and they take turns, so that a busy machine slows both down; medians. Needs the build (scripts/parity-check) and
the Python of scripts/test (.venv-models).
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

EAGER = """
import json, resource, sys, time
import torch, diffusers
a = json.loads(sys.argv[1])
torch.set_num_threads(a["threads"]); torch.set_grad_enabled(False); torch.manual_seed(0)
dtype = dict(fp32=torch.float32, bf16=torch.bfloat16)[a["dtype"]]
model = diffusers.AutoencoderKLWan().eval().to(dtype)
z = torch.randn(1, 16, *a["latent"], dtype=dtype)
seconds = []
for _ in range(a["repeats"] + 1):
    t = time.perf_counter(); model.decode(z, return_dict=False); seconds.append(time.perf_counter() - t)
print(json.dumps(dict(first_seconds=seconds[0], seconds=seconds[1:], peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)))
"""


def eager(args):
    arguments = dict(latent=args.latent, threads=args.threads, dtype=args.dtype, repeats=args.repeats)
    done = subprocess.run([str(args.python), "-c", EAGER, json.dumps(arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench_vae.py: PyTorch's side failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(args, variant):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        subprocess.run([args.binary, "bench", "vae", "--quiet", "--threads", str(args.threads), "--dtype", args.dtype, "--variant", variant,
                        "--latent", ",".join(map(str, args.latent)), "--repeats", str(args.repeats), "--json", out], check=True)
        return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latent", default="3,68,120", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--dtype", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=0, help="decodes of a turn after its first, which then does not count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--candidates", default="own,eager", type=lambda text: text.split(","), help="of own, aten, eager; the last is what the others are compared with")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--binary", default=ROOT / "build/release/parity-check")
    parser.add_argument("--python", default=ROOT / ".venv-models/bin/python")
    args = parser.parse_args()
    if not set(args.candidates) <= {"own", "aten", "eager"}:
        sys.exit("bench_vae.py: --candidates takes own, aten and eager")
    turns = {name: [] for name in args.candidates}
    for number in range(args.rounds):
        for name in args.candidates[::-1] if number % 2 else args.candidates:
            turns[name].append(eager(args) if name == "eager" else ours(args, name))
    medians = {name: statistics.median(s for turn in all_turns for s in (turn["seconds"] or [turn["first_seconds"]])) for name, all_turns in turns.items()}
    base = args.candidates[-1]
    print(f"latent {args.latent}, {args.dtype}, {args.threads} threads, medians of {args.rounds} turns\n\n| candidate | decode, s | × as fast | peak memory, GiB |\n|---|---|---|---|")
    for name, seconds in medians.items():
        print(f"| {name} | {seconds:.2f} | {medians[base] / seconds:.2f} | {max(turn['peak_bytes'] for turn in turns[name]) / 2**30:.2f} |")
    if args.json:
        args.json.write_text(json.dumps(dict(latent=args.latent, dtype=args.dtype, threads=args.threads, medians=medians, turns=turns), indent=1) + "\n")


if __name__ == "__main__":
    main()
