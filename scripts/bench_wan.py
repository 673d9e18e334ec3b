#!/usr/bin/env python3
"""The C++ transformer beside PyTorch eager on the same configuration: seconds, peak memory, share of the rate of matrix products, what many steps cost; and what recording costs.

    bench_wan.py                                  the 1.3B model, 9 frames of 544x960, bf16, 2 threads: own kernels and PyTorch eager
    bench_wan.py --candidates own,aten,eager      LibTorch's kernels too (compile: torch.compile of diffusers' model)
    bench_wan.py --layers 3 --rounds 3            fewer layers, more turns
    bench_wan.py --json FILE --markdown FILE      the figures, the tables
    bench_wan.py --record                         also one forward recorded at level module: time and file size

Each side runs in its own process, and they take turns in one run, so that a busy machine slows all of them down; medians over all turns. PyTorch's is the diffusers model as its
users load it. Needs the build (scripts/parity-check) and the Python of scripts/test (.venv-models).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = 5, 10, 30, 50
NAMES = dict(own="parity-check, own kernels", aten="parity-check, LibTorch's", eager="PyTorch eager", compile="torch.compile")

EAGER = """
import json, resource, sys, time
start = time.perf_counter()
import torch, diffusers
a = json.loads(sys.argv[1])
torch.set_num_threads(a["threads"]); torch.set_grad_enabled(False); torch.manual_seed(0)
cls = diffusers.SkyReelsV2Transformer3DModel
torch.set_default_dtype(torch.bfloat16)
model = cls(num_attention_heads=12, attention_head_dim=128, in_channels=36, out_channels=16, text_dim=4096, ffn_dim=8960, num_layers=a["layers"], image_dim=1280,
            added_kv_proj_dim=1536).eval()
torch.set_default_dtype(torch.float32)
for name, p in model.named_parameters():
    if any(k in name for k in cls._keep_in_fp32_modules): p.data = p.data.float()
run = torch.compile(model) if a["compile"] else model
f, h, w = a["latent"]
inputs = dict(hidden_states=torch.randn(1, 36, f, h, w, dtype=torch.bfloat16), timestep=torch.tensor([998]),
              encoder_hidden_states=torch.randn(1, 512, 4096, dtype=torch.bfloat16), encoder_hidden_states_image=torch.randn(1, 257, 1280, dtype=torch.bfloat16), return_dict=False)
seconds = []
for _ in range(a["forwards"]):
    t = time.perf_counter(); run(**inputs); seconds.append(time.perf_counter() - t)
out = dict(seconds=seconds, peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
if a["record"]:
    import os, parity_probe
    t = time.perf_counter()
    with parity_probe.record(model, a["record"], level="module"): model(**inputs)
    out.update(record_seconds=time.perf_counter() - t, record_bytes=os.path.getsize(a["record"]))
print(json.dumps(out))
"""


def eager(args, compiled, record):
    """One turn of PyTorch's side: {seconds, peak_bytes}; with `record`, a file's name, what recording took."""
    arguments = dict(latent=args.latent, layers=args.layers, forwards=args.forwards, threads=args.threads, compile=compiled, record=record)
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "probes/python"))
    done = subprocess.run([str(args.python), "-c", EAGER, json.dumps(arguments)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench_wan.py: PyTorch's side failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(args, variant, folder):
    """One turn of parity-check: {seconds, peak_bytes, tokens, operations, product_rate}."""
    config = dict(model_type="i2v", dim=1536, ffn_dim=8960, num_heads=12, num_layers=args.layers, in_dim=36, out_dim=16, freq_dim=256, text_dim=4096, text_len=512,
                  image_dim=1280, image_tokens=257, eps=1e-6, qk_norm=True, cross_attn_norm=True)
    (folder / "config.json").write_text(json.dumps(config))
    subprocess.run([args.binary, "bench", "wan", "--quiet", "--threads", str(args.threads), "--dtype-path", "dsky", "--variant", variant, "--config", folder / "config.json",
                    "--latent", ",".join(map(str, args.latent)), "--repeats", str(args.forwards - 1), "--json", folder / "bench.json"], check=True)
    found = json.loads((folder / "bench.json").read_text())
    return dict(found, seconds=[found["first_seconds"], *found["seconds"]])


def measure(args):
    """{candidate: {first, steady, peak_bytes}} and the machine's rate; steady: the median of all forwards but each turn's first (of the firsts where there are no others)."""
    turns = {name: [] for name in args.candidates}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            for name in args.candidates[::-1] if number % 2 else args.candidates:
                turns[name].append(eager(args, name == "compile", "") if name in ("eager", "compile") else ours(args, name, Path(folder)))
        recorded = eager(args, False, os.path.join(folder, "r.h5")) if args.record else None
    rows = {}
    for name, all_turns in turns.items():
        later = [s for turn in all_turns for s in turn["seconds"][1:]]
        first = [turn["seconds"][0] for turn in all_turns]
        rows[name] = dict(first=statistics.median(first), steady=statistics.median(later or first), peak_bytes=max(turn["peak_bytes"] for turn in all_turns),
                          seconds=[turn["seconds"] for turn in all_turns])
    native = [turn for name in ("own", "aten") for turn in turns.get(name, [])]
    rate = statistics.median(turn["product_rate"] for turn in native) if native else None
    return rows, dict(rate=rate, operations=native[0]["operations"] if native else None, tokens=native[0]["tokens"] if native else None), recorded


def cost(row, steps):
    """Seconds of `steps` forwards: the first, which compiles and fills caches, and the others."""
    return row["first"] + (steps - 1) * row["steady"]


def break_even(row, other):
    """From how many steps on `row` costs less than `other` in all; None: never within a thousand."""
    return next((n for n in range(1, 1001) if cost(row, n) < cost(other, n)), None)


def tables(rows, machine, base):
    lines = ["| candidate | first step, s | steady, s | × as fast | of the rate of products | peak memory, GiB |", "|---|---|---|---|---|---|"]
    for name, row in rows.items():
        share = f"{machine['operations'] / row['steady'] / machine['rate']:.2f}" if machine["rate"] else ""
        lines.append(f"| {NAMES[name]} | {row['first']:.2f} | {row['steady']:.2f} | {rows[base]['steady'] / row['steady']:.2f} | {share} | {row['peak_bytes'] / 2**30:.2f} |")
    lines += ["", f"| steps | {' | '.join(NAMES[name] + ', s' for name in rows)} | fastest |", "|---|" + "---|" * (len(rows) + 1)]
    for steps in STEPS:
        costs = {name: cost(row, steps) for name, row in rows.items()}
        lines.append(f"| {steps} | {' | '.join(f'{c:.1f}' for c in costs.values())} | {NAMES[min(costs, key=costs.get)]} |")
    others = [name for name in rows if name != base]
    lines += [""] + [f"{NAMES[name]} costs less than {NAMES[base]} " + (f"from step {n} on." if (n := break_even(rows[name], rows[base])) else "at no number of steps.") for name in others]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latent", default="3,68,120", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=1, help="turns of each candidate, forwards and backwards")
    parser.add_argument("--forwards", type=int, default=2, help="per turn; the first is counted apart")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--candidates", default="own,eager", type=lambda text: text.split(","), help=f"of {', '.join(NAMES)}; the last is what the others are compared with")
    parser.add_argument("--record", action="store_true", help="also record one forward at level module")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--markdown", type=Path, help="write the tables there")
    parser.add_argument("--binary", default=ROOT / "build/release/parity-check")
    parser.add_argument("--python", default=ROOT / ".venv-models/bin/python")
    args = parser.parse_args()
    if not set(args.candidates) <= set(NAMES):
        sys.exit(f"bench_wan.py: --candidates takes {', '.join(NAMES)}")
    rows, machine, recorded = measure(args)
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    rate = f"; products of 2048 x 2048 at {machine['rate'] / 1e9:.0f} G operations a second" if machine["rate"] else ""
    text = [f"Wan 1.3B widths, {args.layers} layers, latent {args.latent}, {machine['tokens'] or '?'} tokens, bf16; {cpu}, {args.threads} threads{rate}.", "",
            *tables(rows, machine, args.candidates[-1])]
    print("\n".join(text), flush=True)
    if recorded:
        forward = min(recorded["seconds"])
        print(f"recording one forward at level module: {recorded['record_seconds']:.2f} s = {recorded['record_seconds'] / forward:.2f} x the forward, {recorded['record_bytes'] / 2**30:.2f} GiB")
    if args.markdown:
        args.markdown.write_text("\n".join(text) + "\n")
    if args.json:
        args.json.write_text(json.dumps(dict(cpu=cpu, threads=args.threads, layers=args.layers, latent=args.latent, machine=machine, candidates=rows,
                                             costs={name: {n: cost(row, n) for n in STEPS} for name, row in rows.items()}), indent=1) + "\n")


if __name__ == "__main__":
    main()
