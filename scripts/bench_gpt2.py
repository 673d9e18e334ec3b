#!/usr/bin/env python3
"""GPT-2 124M, token by token on a cache: parity-check's kernels beside LibTorch's and PyTorch eager, in one run.

    bench_gpt2.py                      fp32 and bf16, 16 + 64 tokens, medians of 5
    bench_gpt2.py --tokens 512         further up the cache
    bench_gpt2.py --json FILE          the figures

The programs take turns, so that a busy machine slows all of them down; each warms up with as many tokens as it is measured on, decodes greedily and has the same
random sizes of weights. PyTorch is transformers' GPT2LMHeadModel with its cache. Needs .venv-models.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
OURS = [("own", "fp32"), ("aten", "fp32"), ("int8", "fp32"), ("own", "bf16"), ("aten", "bf16")]


def torch_model(dtype, config):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**config, bos_token_id=0, eos_token_id=0)).to(getattr(torch, dtype)).eval()


def torch_round(model, prompt, tokens):
    """Milliseconds of each decoded token."""
    import torch

    spent = []
    with torch.inference_mode():
        out = model(torch.randint(0, model.config.vocab_size, (1, prompt)), use_cache=True)
        for _ in range(tokens):
            start = time.perf_counter()
            word = out.logits[:, -1].argmax(-1, keepdim=True)
            out = model(word, past_key_values=out.past_key_values, use_cache=True)
            spent.append(1000 * (time.perf_counter() - start))
    return spent


def ours_round(args, variant, dtype):
    """One process, one measured round after one that warms up."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        command = [args.program, "bench", "gpt2", "-q", "--variant", variant, "--dtype", dtype, "--prompt", args.prompt, "--tokens", args.tokens,
                   "--repeats", 1, "--threads", args.threads, "--json", out]
        if args.config:
            command += ["--config", args.config]
        subprocess.run([str(part) for part in command], check=True)
        return json.loads(out.read_text())


def by_median(rounds):
    return [statistics.median(position) for position in zip(*rounds)]


def figures(name, dtype, rounds, **more):
    """`seconds`: of each round; `milliseconds_by_position`: the median over the rounds."""
    seconds = [sum(r) / 1000 for r in rounds]
    rate = len(rounds[0]) / statistics.median(seconds)
    return dict(name=name, dtype=dtype, seconds=seconds, tokens_per_second=rate, milliseconds_by_position=by_median(rounds), **more)


def measure(args):
    import torch

    torch.set_num_threads(args.threads)
    config = json.loads(Path(args.config).read_text()) if args.config else dict(n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024)
    models = {"fp32": torch_model("float32", config), "bf16": torch_model("bfloat16", config)}
    for model in models.values():
        torch_round(model, args.prompt, args.tokens)   # as long as what is measured
    spent, reports = {}, {}
    for _ in range(args.rounds):
        for variant, dtype in OURS:
            reports.setdefault((variant, dtype), []).append(ours_round(args, variant, dtype))
            spent.setdefault((variant, dtype), []).append(reports[variant, dtype][-1]["milliseconds_by_position"])
        for dtype, model in models.items():
            spent.setdefault(("pytorch eager", dtype), []).append(torch_round(model, args.prompt, args.tokens))
    rows = []
    for (name, dtype), rounds in spent.items():
        own = reports.get((name, dtype))
        more = dict(bound_share=statistics.median(r["bound_share"] for r in own), read_bytes_per_second=max(r["read_bytes_per_second"] for r in own),
                    weight_bytes=own[0]["weight_bytes"], cache_bytes=own[0]["cache_bytes"]) if own else {}
        rows.append(figures(name, dtype, rounds, **more))
    return rows


def show(rows, args):
    eager = {r["dtype"]: r["tokens_per_second"] for r in rows if r["name"] == "pytorch eager"}
    print(f"{args.tokens} tokens after {args.prompt}, {args.threads} threads, medians of {args.rounds}; load of the machine {os.getloadavg()[0]:.1f}\n")
    print("| variant | dtype | tokens/s | spread | x PyTorch eager | ms, first to last position | share of the bandwidth bound |")
    print("|---|---|---|---|---|---|---|")
    for r in rows:
        spread = max(r["seconds"]) / min(r["seconds"])
        ms, share = r["milliseconds_by_position"], r.get("bound_share")
        print(f"| {r['name']} | {r['dtype']} | {r['tokens_per_second']:.1f} | {spread:.2f} | {r['tokens_per_second'] / eager[r['dtype']]:.2f} "
              f"| {ms[0]:.1f} – {ms[-1]:.1f} | {'' if share is None else f'{share:.2f}'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/dev/parity-check"))
    parser.add_argument("--config", help="config.json of another size")
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    rows = measure(args)
    show(rows, args)
    if args.json:
        temporary = Path(args.json + ".tmp")
        temporary.write_text(json.dumps(rows, indent=1) + "\n")
        temporary.replace(args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
