#!/usr/bin/env python3
"""GPT-2 124M, token by token on a cache: parity-check's kernels beside LibTorch's, PyTorch eager and llama.cpp, in one run.

    bench_gpt2.py                                       fp32, bf16 and INT8, 16 + 64 tokens, medians of 5
    bench_gpt2.py --prompt 512 --tokens 16              a prompt worth measuring
    bench_gpt2.py --tokens 1008 --rounds 1 --plot F.svg ms a token up to position 1024, drawn by gnuplot, beside decoding without a cache
    bench_gpt2.py --only fp32 --markdown F.md           one dtype (fp32, bf16, int8); the table with published figures beside it
    bench_gpt2.py --json FILE                           the figures

The programs take turns, so that a busy machine slows all of them down; each warms up with as many tokens as it is measured on, decodes greedily and has the same
random sizes of weights. PyTorch is transformers' GPT2LMHeadModel with its cache, logits of the last token alone; llama.cpp, in .venv-engines where that is
there, reads weights in the same format (Q8_0 for INT8). Needs .venv-models.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
OURS = {"fp32": [("own", "fp32"), ("aten", "fp32")], "bf16": [("own", "bf16"), ("aten", "bf16")], "int8": [("int8", "fp32")]}
TORCH = {"fp32": "float32", "bf16": "bfloat16"}
GGUF = {"fp32": "f32", "bf16": "bf16", "int8": "q8_0"}
ENGINES = ROOT / ".venv-engines/bin/python"
UNCACHED = 128  # tokens decoded without a cache for the plot
PUBLISHED = """Published by the authors of ports to JAX; they ran elsewhere, on other processors, so that only their factors say something here:

| model | optimisation | published |
|---|---|---|
| GPT-2 in JAX | cache (O(N²) to O(N)), compiled decoding | 1.50 to 24.45 tokens/s (16.32 x) |
| GPT-2 in JAX | INT8 weights | 163 MB + 38 MB cache |
| gpt-oss-20b in JAX | optimised against baseline | initialisation 5.3 x, forward 1.7 x, generation 4.7 x, keys and values in an eighth of the memory |
"""


def torch_model(dtype, config):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**config, bos_token_id=0, eos_token_id=0)).to(getattr(torch, dtype)).eval()


def torch_round(model, prompt, tokens):
    """Milliseconds of the prompt, and of each decoded token."""
    import torch

    spent = []
    with torch.inference_mode():
        ids = torch.randint(0, model.config.vocab_size, (1, prompt))
        start = time.perf_counter()
        out = model(ids, use_cache=True, logits_to_keep=1)
        first = 1000 * (time.perf_counter() - start)
        for _ in range(tokens):
            start = time.perf_counter()
            word = out.logits[:, -1].argmax(-1, keepdim=True)
            out = model(word, past_key_values=out.past_key_values, use_cache=True)
            spent.append(1000 * (time.perf_counter() - start))
    return dict(prompt_milliseconds=first, milliseconds_by_position=spent)


def process_round(command, config):
    """What a process measured in one round after one that warms up."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        subprocess.run([str(part) for part in [*command, "--json", out, *(["--config", config] if config else [])]], check=True)
        return json.loads(out.read_text())


def ours_round(args, variant, dtype, *more):
    return process_round([args.program, "bench", "gpt2", "-q", "--variant", variant, "--dtype", dtype, "--prompt", args.prompt, "--tokens", args.tokens, "--repeats", 1,
                          "--threads", args.threads, *more], args.config)


def llama_round(args, kind, folder):
    return process_round([ENGINES, ROOT / "scripts/bench_llama.py", "--format", GGUF[kind], "--model", Path(folder) / f"{GGUF[kind]}.gguf", "--prompt", args.prompt,
                          "--tokens", args.tokens, "--threads", args.threads], args.config)


def exponent(milliseconds, prompt):
    """e of ms = a position^e, least squares over the logarithms."""
    points = [(math.log(prompt + i + 1), math.log(ms)) for i, ms in enumerate(milliseconds)]
    return statistics.linear_regression(*zip(*points)).slope if len(points) > 1 else 0.0


def figures(kind, name, rounds, prompt):
    """`seconds`: of each round; the others: medians over the rounds."""
    seconds = [sum(r["milliseconds_by_position"]) / 1000 for r in rounds]
    by_position = [statistics.median(position) for position in zip(*(r["milliseconds_by_position"] for r in rounds))]
    row = dict(kind=kind, name=name, seconds=seconds, tokens_per_second=len(by_position) / statistics.median(seconds), milliseconds_by_position=by_position,
               exponent=exponent(by_position, prompt), prompt_milliseconds=statistics.median(r["prompt_milliseconds"] for r in rounds))
    for key in ("bound_share", "memory_share"):
        if key in rounds[0]:
            row[key] = statistics.median(r[key] for r in rounds)
    return row


def measure(args, folder):
    """One row a program and kind: fp32, bf16, int8."""
    import torch

    torch.set_num_threads(args.threads)
    config = json.loads(Path(args.config).read_text()) if args.config else dict(n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024)
    models = {kind: torch_model(TORCH[kind], config) for kind in args.only if kind in TORCH}
    for model in models.values():
        torch_round(model, args.prompt, args.tokens)   # as long as what is measured
    spent = {}
    for _ in range(args.rounds):
        for kind in args.only:
            for variant, dtype in OURS[kind]:
                spent.setdefault((kind, variant), []).append(ours_round(args, variant, dtype))
            if kind in models:
                spent.setdefault((kind, "pytorch eager"), []).append(torch_round(models[kind], args.prompt, args.tokens))
            if ENGINES.exists() and not args.no_llama:
                spent.setdefault((kind, "llama.cpp"), []).append(llama_round(args, kind, folder))
    return [figures(kind, name, rounds, args.prompt) for (kind, name), rounds in spent.items()]


def table(rows, args):
    rate = {(r["kind"], r["name"]): r["tokens_per_second"] for r in rows}
    lines = [f"{args.tokens} tokens after {args.prompt}, {args.threads} threads, medians of {args.rounds}; load of the machine {os.getloadavg()[0]:.1f}\n",
             "| weights | program | tokens/s | spread | x PyTorch eager | x llama.cpp | x own fp32 | ms, first to last position | exponent | prompt, ms | of the bandwidth bound | memory, of weights and cache |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        ms = r["milliseconds_by_position"]
        times = [f"{r['tokens_per_second'] / rate[key]:.2f}" if key in rate else "" for key in ((r["kind"], "pytorch eager"), (r["kind"], "llama.cpp"), ("fp32", "own"))]
        shares = [f"{r[key]:.2f}" if key in r else "" for key in ("bound_share", "memory_share")]
        lines.append(f"| {r['kind']} | {r['name']} | {r['tokens_per_second']:.1f} | {max(r['seconds']) / min(r['seconds']):.2f} | {' | '.join(times)} | {ms[0]:.1f} – {ms[-1]:.1f} "
                     f"| {r['exponent']:.2f} | {r['prompt_milliseconds']:.1f} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def plot(rows, args):
    """ms a token by position; decoding without a cache beside it, as far as that is bearable."""
    curves = [(f"{r['name']}, {r['kind']}", r["milliseconds_by_position"]) for r in rows]
    few = argparse.Namespace(**{**vars(args), "tokens": min(args.tokens, UNCACHED)})
    curves.append(("own, fp32, no cache", ours_round(few, "own", "fp32", "--no-cache")["milliseconds_by_position"]))
    lines = ["set terminal svg size 900,480 font 'sans,13' background rgb 'white'", f"set output '{args.plot}'", "set logscale y", "set xlabel 'position'",
             "set ylabel 'ms a token'", "set key outside right", "set grid"]
    for i, (_, milliseconds) in enumerate(curves):
        lines += [f"$d{i} << EOD"] + [f"{args.prompt + t + 1} {ms}" for t, ms in enumerate(milliseconds)] + ["EOD"]
    lines.append("plot " + ", ".join(f"$d{i} with lines linewidth 2 title '{name}'" for i, (name, _) in enumerate(curves)))
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)


def written(file, text):
    temporary = Path(file + ".tmp")
    temporary.write_text(text)
    temporary.replace(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/dev/parity-check"))
    parser.add_argument("--config", help="config.json of another size")
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="fp32,bf16,int8", type=lambda text: text.split(","), help="of fp32, bf16, int8")
    parser.add_argument("--no-llama", action="store_true", help="leave llama.cpp out")
    parser.add_argument("--gguf", help="folder that keeps llama.cpp's files between runs (0.9 GB; default: none kept)")
    parser.add_argument("--plot", help="write an SVG")
    parser.add_argument("--markdown", help="write the table and what was published to this file")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    if not set(args.only) <= set(OURS):
        sys.exit("bench_gpt2.py: --only takes fp32, bf16 and int8")
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(args, args.gguf or folder)
    shown = table(rows, args)
    print(shown)
    if args.json:
        written(args.json, json.dumps(rows, indent=1) + "\n")
    if args.markdown:
        written(args.markdown, f"{shown}\n{PUBLISHED}")
    if args.plot:
        plot(rows, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
