#!/usr/bin/env python3
"""What `compare` costs by how much of a port was recorded: seconds and peak memory, and what it says of a healthy port and of one with a fault in one layer.

    bench_compare.py [--sizes 2x64,12x256] [--layer 5] [--faults gelu] [--records logits,modules,first] [--dtype float32] [--width 768] [--folder DIR] [-- OPTIONS]

GPT-2 of the given width (heads of 64, 50257 tokens), random weights from a seed, layers x tokens as in --sizes, by transformers (.venv-models of scripts/test).
The reference is recorded at level `module`; the port is the same model with its attention and matrix products taken otherwise (healthy: eager attention, sums split
in two), with one fault on top. Of the port `logits` records the result alone, `modules` all modules, `first` no more than the first tensors (an interrupted file).
What follows `--` is given to `parity-check compare`.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

RECORD = """
import json, sys
import torch, transformers, parity_probe
from transformers.pytorch_utils import Conv1D
a = json.loads(sys.argv[1])
torch.set_num_threads(2); torch.set_grad_enabled(False); torch.manual_seed(0)
config = transformers.GPT2Config(n_layer=a["layers"], n_embd=a["width"], n_head=a["width"] // 64, vocab_size=50257, n_positions=max(64, a["tokens"]), use_cache=False)
model = transformers.GPT2LMHeadModel(config).eval().to(getattr(torch, a["dtype"]))
ids = torch.randint(0, 50257, (1, a["tokens"]), generator=torch.Generator().manual_seed(1))
if a["port"]:
    # another implementation: eager attention, each product's sum in two halves
    model.set_attn_implementation("eager")
    def halves(self, x):
        k = x.shape[-1] // 2
        return (x[..., :k] @ self.weight[:k] + x[..., k:] @ self.weight[k:]) + self.bias
    Conv1D.forward = halves
    block = model.transformer.h[min(a["layer"], a["layers"] - 1)]
    blocks = model.transformer.h if a["fault"].endswith("-everywhere") else [block]
    for block in blocks:
        fault = a["fault"].removesuffix("-everywhere")
        if fault == "gelu": block.mlp.act = torch.nn.GELU()
        elif fault == "eps": block.ln_1.eps = 1e-6
        elif fault == "eps2": block.ln_2.eps = 1e-3
        elif fault == "scale": block.attn.scaling = 1 / 8.5
        elif fault == "bias": block.mlp.c_fc.bias.data = torch.randn_like(block.mlp.c_fc.bias) * .02
        elif fault == "gain": block.mlp.c_proj.weight.data *= 1.01
        elif fault == "relu": block.mlp.act = torch.nn.ReLU()
        elif fault == "residual":
            forward = block.mlp.forward
            block.mlp.forward = lambda x, forward=forward: forward(x) + x
        elif fault == "noattention": block.attn.c_proj.weight.data *= 0
        elif fault == "swap": block.ln_1, block.ln_2 = block.ln_2, block.ln_1
        elif fault == "heads":
            c = block.attn.c_proj
            c.forward = lambda x, c=c: halves(c, x.unflatten(-1, (-1, 64)).flip(-2).flatten(-2))
        elif fault: sys.exit("no such fault")
if a["record"] == "modules":
    with parity_probe.record(model, a["file"], level="module"): model(ids)
elif a["record"] == "logits":
    logits = model(ids).logits
    with parity_probe.Writer(a["file"]) as w: w.write(a["name"], logits)
else:
    with parity_probe.Writer(a["file"]) as w:
        w.write("transformer.wte", model.transformer.wte(ids)); w.write("transformer.wpe", model.transformer.wpe(torch.arange(a["tokens"])[None]))
"""


def record(python, **arguments):
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "probes/python"))
    done = subprocess.run([python, "-c", RECORD, json.dumps(arguments)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench_compare.py: recording failed: {done.stderr.strip().splitlines()[-1]}")


def compare(binary, reference, candidate, options):
    """(seconds, peak bytes, exit status, report)"""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        start = time.perf_counter()
        process = subprocess.Popen([binary, "compare", reference, candidate, "--quiet", "--threads", "2", "--json", out, *options])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        return seconds, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), json.loads(out.read_text()) if out.exists() else None


def finding(report):
    if report is None:
        return "no report"
    first = report["first_divergence"]
    budget = "; ".join(f"{v['untried']} of {v['named']} not tried: {v['why']}" for c in report["coverage"].values() for v in c["variants"] if v["untried"])
    return f"{report['verdict']}, {first['path'] or '(result)'}: {first['diagnosis'][:230]}" if first else report["verdict"] + (f" ({budget})" if budget else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2x64,12x256", help="layers x tokens")
    parser.add_argument("--layer", type=int, default=5, help="that has the fault (the last one in shallower models)")
    parser.add_argument("--faults", default="gelu", help="gelu, eps, eps2, scale, bias, gain, relu, residual, noattention, heads; -everywhere: in all layers")
    parser.add_argument("--records", default="logits,modules,first")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--name", default="lm_head", help="of the logits in the file that has them alone")
    parser.add_argument("--folder", help="keeps the recordings there, and takes those that are there")
    parser.add_argument("--binary", default=ROOT / "build/release/parity-check")
    parser.add_argument("--python", default=ROOT / ".venv-models/bin/python")
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[: own.index("--")], own[own.index("--") + 1 :]
    a = parser.parse_args(own)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(a.folder or temporary)
        folder.mkdir(exist_ok=True)
        for size in a.sizes.split(","):
            layers, tokens = map(int, size.split("x"))

            def file(kind, fault="", port=True):
                path = folder / f"{size}.{a.width}.{a.dtype}.{'port' if port else 'reference'}.{kind}.{fault or 'healthy'}.{a.layer}.h5"
                if not path.exists():
                    record(str(a.python), layers=layers, tokens=tokens, width=a.width, dtype=a.dtype, layer=a.layer, port=port, fault=fault, record=kind, name=a.name, file=str(path))
                return path

            reference = file("modules", port=False)
            for kind in a.records.split(","):
                for fault in ["", *a.faults.split(",")] if kind != "first" else [""]:
                    seconds, peak, status, report = compare(a.binary, reference, file(kind, fault), options)
                    print(f"{size} {kind:8} {fault or 'healthy':12} {seconds:6.1f} s {peak / 2**30:5.2f} GiB  exit {status}  {finding(report)}", flush=True)


if __name__ == "__main__":
    main()
