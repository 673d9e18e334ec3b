#!/usr/bin/env python3
"""`compare` beside replays of the same program: one block of Wan 1.3B in its true widths at growing numbers of tokens, or a program of growing length; time, memory, and how they grow.

    bench_replays.py                               a block at 765, 1530, 3060 and 6120 tokens, fp32
    bench_replays.py --dtype bf16 --fault          bf16, the port with the exact GELU
    bench_replays.py --layers 2,4,8,16             GPT-2 of that many layers, 64 tokens: linear in ops
    bench_replays.py --json FILE --markdown FILE   the figures

The reference is recorded at level module, so that everything else is recomputed. The port computes attention with all scores in memory (math) instead of the fused kernel, which is legitimate; and takes
the erf form of GELU with --fault. Three replays: the program once in the recorded dtypes and twice in fp64, each a process of its own (`parity-check replay`), start and reading included, as in `compare`.
Live values: what one replay in the recorded dtypes must hold at once, weights included, each value freed behind its last reader (counted from the recording, not measured). Memory is what the
process allocated for itself at most (RssAnon, looked at every 5 ms). Exponent: e of time = a size^e, least squares over the logarithms. Needs .venv-models.
"""
import argparse
import itertools
import json
import math
import sys
import tempfile
from pathlib import Path

import h5py
import torch

from bench_tensor_sets import ROOT, watched

sys.path.insert(0, str(ROOT / "probes" / "python"))
import parity_probe  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
LATENTS = {765: (3, 34, 30), 1530: (3, 34, 60), 3060: (3, 68, 60), 6120: (3, 68, 120)}  # frames, rows, columns; patches of 1 x 2 x 2


def block(tokens, dtype):
    """(model, its inputs): diffusers' Wan transformer with the 1.3B model's widths and one layer."""
    from diffusers import WanTransformer3DModel
    torch.manual_seed(0)
    model = WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=12, attention_head_dim=128, in_channels=16, out_channels=16, text_dim=4096, freq_dim=256,
                                  ffn_dim=8960, num_layers=1).eval().to(dtype)
    frames, rows, columns = LATENTS[tokens]
    return model, dict(hidden_states=torch.randn(1, 16, frames, rows, columns, dtype=dtype), timestep=torch.tensor([500]),
                       encoder_hidden_states=torch.randn(1, 512, 4096, dtype=dtype), return_dict=False)


def layers(count, dtype):
    """(model, its inputs): transformers' GPT-2 of width 256."""
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=count, n_embd=256, n_head=4, vocab_size=512, use_cache=False)).eval().to(dtype)
    return model, dict(input_ids=torch.randint(0, 512, (1, 64)))


def put_in_fault(model):
    for module in model.modules():
        if getattr(module, "approximate", None) == "tanh":
            module.approximate = "none"
        elif type(getattr(module, "act", None)).__name__ == "NewGELUActivation":
            module.act = torch.nn.GELU()


def record(make, size, args, folder):
    model, inputs = make(size, DTYPES[args.dtype])
    files = folder / "reference.h5", folder / "port.h5"
    with torch.no_grad():
        with parity_probe.record(model, files[0], level="module"):
            model(**inputs)
        if args.fault:
            put_in_fault(model)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), parity_probe.record(model, files[1], level="module"):
            model(**inputs)
    return files


def value_ids(argument):
    """Ids of the tensors in an op's arguments."""
    if isinstance(argument, list):
        return [v for part in argument for v in value_ids(part)]
    if isinstance(argument, dict):
        return [argument["v"]] if "v" in argument else [v for part in argument.values() for v in value_ids(part)]
    return []


def bytes_of(value):
    return math.prod(value["s"] or []) * getattr(torch, value["d"]).itemsize


def live_bytes(file):
    """(what a replay must hold at once, number of ops): leaves that are read, and each value from its op to its last reader. A view holds its base's memory."""
    with h5py.File(file) as recording:
        events = [json.loads(line) for line in bytes(recording["trace/events"][:]).splitlines()]
    ops = [e for e in events if e["e"] == "op"]
    size = {e["v"]: bytes_of(e) for e in events if e["e"] == "leaf"}
    leaves, base, born, last = set(size), {}, {}, {}
    for number, op in enumerate(ops):
        read = [base.get(v, v) for v in value_ids([op["args"], op["kwargs"]])]
        last.update(dict.fromkeys(read, number))
        for out in filter(None, op["out"]):
            v = out["v"]
            if op.get("view") and read:
                base.setdefault(v, read[0])
            elif v not in size:
                size[v], born[v] = bytes_of(out), number
            last[base.get(v, v)] = number
    change = [0] * (len(ops) + 1)
    for v, end in last.items():
        if v not in leaves:
            change[born[v]] += size[v]
            change[end + 1] -= size[v]
    return sum(size[v] for v in last if v in leaves) + max(itertools.accumulate(change)), len(ops)


def run(args, *arguments):
    """(seconds, bytes of its own at most, exit status)"""
    return watched([args.program, *map(str, arguments), "--quiet", "--threads", str(args.threads)])


def measure(size, args):
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        reference, port = record(layers if args.layers else block, size, args, folder)
        live, ops = live_bytes(reference)
        row = dict(size=size, ops=ops, live=live, recorded=math.inf, fp64=math.inf, compare=math.inf, memory=0)
        for _ in range(args.rounds):
            seconds, memory, status = run(args, "compare", reference, port, "--json", folder / "report.json")
            row.update(compare=min(row["compare"], seconds), memory=max(row["memory"], memory), status=status)
            for dtype in ("recorded", "fp64"):
                row[dtype] = min(row[dtype], run(args, "replay", reference, "--dtype", dtype)[0])
        report = json.loads((folder / "report.json").read_text())
        row.update(verdict=report["verdict"], first=(report["first_divergence"] or {}).get("path", ""), name=(report["first_divergence"] or {}).get("diagnosis", "")[:40])
        row["replays"] = row["recorded"] + 2 * row["fp64"]
        return row


def exponent(rows, what):
    x, y = ([math.log(row[key]) for row in rows] for key in ("size", what))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / spread if spread else 0.


def table(rows, args):
    what = "layers" if args.layers else "tokens"
    lines = [f"{args.dtype}, {args.threads} threads, the fastest of {args.rounds} turns; {'with a wrong GELU' if args.fault else 'a benign port'}", "",
             f"| {what} | ops | replay recorded, s | fp64, s | three replays, s | compare, s | compare / three | live values, MiB | own memory, MiB | memory / live | verdict |",
             "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    for r in rows:
        lines.append(f"| {r['size']} | {r['ops']} | {r['recorded']:.2f} | {r['fp64']:.2f} | {r['replays']:.2f} | {r['compare']:.2f} | {r['compare'] / r['replays']:.2f} "
                     f"| {r['live'] / 2**20:.0f} | {r['memory'] / 2**20:.0f} | {r['memory'] / r['live']:.1f} | {r['verdict']} {r['first']} {r['name']} |")
    if len(rows) > 1:
        lines += ["", f"Exponents over {what}: replay recorded {exponent(rows, 'recorded'):.2f}, fp64 {exponent(rows, 'fp64'):.2f}, compare {exponent(rows, 'compare'):.2f}, "
                      f"memory {exponent(rows, 'memory'):.2f}"]
    return "\n".join(lines) + "\n"


def main():
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/dev/parity-check"))
    parser.add_argument("--tokens", default=list(LATENTS), type=numbers)
    parser.add_argument("--layers", default=[], type=numbers)
    parser.add_argument("--dtype", default="fp32", choices=DTYPES)
    parser.add_argument("--fault", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--folder", help="where the recordings go (default: the temporary folder)")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.folder:
        Path(args.folder).mkdir(parents=True, exist_ok=True)
    rows = []
    for size in args.layers or args.tokens:
        rows.append(measure(size, args))
        print(table(rows[-1:], args), flush=True)
    text = table(rows, args)
    print(text)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))
    if args.markdown:
        Path(args.markdown).write_text(text)


if __name__ == "__main__":
    main()
