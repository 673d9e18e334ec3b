"""Twelve faults of a conversion to GGUF, each run by the real llama.cpp and judged by `parity-check compare`.

    python engine_faults.py FOLDER [--markdown FILE] [--only NAME]   # recordings, reports and GGUF files stay in FOLDER
"""
import argparse
import dataclasses
import json
import pathlib
import re
import sys

import gguf_models
import numpy as np
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Fault:
    model: str                # of engine_models.MODELS
    where: str                # regular expression: the modules at which it may be found
    named: str                # regular expression: what its diagnosis says when it is named
    change: object = None     # (metadata, tensors) -> {tensor: stored type} or None; changes the dictionaries
    record: dict = dataclasses.field(default_factory=dict)


def _heads(tensors, names, heads, change):
    """Applies `change` to the rows of each head of the named weights."""
    for name, n in zip(names, heads):
        rows = tensors[name]
        tensors[name] = np.ascontiguousarray(change(rows.reshape(n, -1, *rows.shape[1:]))).reshape(rows.shape)


def not_permuted(_, tensors):
    for layer in range(3):
        _heads(tensors, [f"blk.{layer}.attn_q.weight", f"blk.{layer}.attn_k.weight"], (4, 2),
               lambda w: w.reshape(w.shape[0], w.shape[1] // 2, 2, -1).swapaxes(1, 2))


def swapped(_, tensors):
    gate, up = "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight"
    tensors[gate], tensors[up] = tensors[up], tensors[gate]


def offset_norms(_, tensors):
    for name in tensors:
        if name.endswith("norm.weight"):
            tensors[name] = tensors[name] + np.float32(1)


def interleaved_groups(_, tensors):
    """Query head h reads KV head h mod 2 in place of h div 2: the heads and the columns of the output projection that take them, in another order."""
    order = [0, 2, 1, 3]
    for layer in range(3):
        _heads(tensors, [f"blk.{layer}.attn_q.weight"], (4,), lambda w: w[order])
        out = tensors[f"blk.{layer}.attn_output.weight"]
        tensors[f"blk.{layer}.attn_output.weight"] = np.ascontiguousarray(out.reshape(64, 4, 16)[:, order].reshape(64, 64))


def shifted_layer(_, tensors):
    for name in [n for n in tensors if n.startswith("blk.2.")]:
        tensors[name] = tensors[name.replace("blk.2.", "blk.1.")]


def without(name):
    def change(_, tensors):
        del tensors[name]
    return change


def metadata(**values):
    def change(data, _):
        data.update({k.replace("__", "."): v for k, v in values.items()})
    return change


LAYER0 = r"model\.layers\.0\."
FAULTS = {
    "Q/K not permuted": Fault("llama", LAYER0 + "self_attn", "permut|interleav|half|halves|order", not_permuted),
    "gate and up swapped in layer 1": Fault("llama", r"model\.layers\.1\.mlp", "swap", swapped),
    "wrong eps (1e-6 to 1e-5)": Fault("llama", LAYER0 + "input_layernorm", "eps", metadata(attention__layer_norm_rms_epsilon=1e-5)),
    "RoPE base (10000 to 500000)": Fault("qwen2", LAYER0 + "self_attn|rotary", "base|theta|frequenc", metadata(rope__freq_base=5e5)),
    "RoPE scaling left out": Fault("llama3", LAYER0 + "self_attn|rotary", "scal|frequenc", without("rope_freqs.weight")),
    "norm weights plus one": Fault("qwen3", LAYER0 + "input_layernorm", "1 \\+|\\+ ?1|plus one|offset|weight", offset_norms),
    "head left out (the embedding takes its place)": Fault("llama", "lm_head", "embed|tied|another weight|wrong weight", without("output.weight")),
    "KV head of query head h is h mod 2": Fault("llama", LAYER0 + "self_attn", "head", interleaved_groups),
    "layer 2 has layer 1's weights": Fault("llama", r"model\.layers\.2\.", "layer|weight", shifted_layer),
    "KV cache in fp16": Fault("qwen2", LAYER0 + "self_attn", "fp16|half|float16", record=dict(cache="f16")),
    "weights in Q8_0": Fault("llama", LAYER0, "Q8_0|int8|quanti", lambda _, t: {n: "Q8_0" for n in t if n.startswith("blk.") and t[n].ndim == 2}),
    "sliding window off by one": Fault("olmo3", LAYER0 + "self_attn", "window", metadata(attention__sliding_window=9)),
}


def record(name, folder, references, outputs="all"):
    """Makes the faulty port of fault `name`, with the logits of these tokens ("all", "last"); returns (reference recording, its recording)."""
    import engine_models
    from parity_probe.engines import llama_cpp
    fault = FAULTS[name]
    if fault.model not in references:
        model = engine_models.model(fault.model)
        references[fault.model] = model, folder / f"{fault.model}.ref.h5"
        engine_models.reference(model, references[fault.model][1])
    model, reference = references[fault.model]
    arch, data, tensors = gguf_models.converted(model)
    kinds = fault.change(data, tensors) if fault.change else None
    stem = re.sub(r"\W+", "_", f"{name} {outputs}").strip("_").lower()
    gguf = gguf_models.write(folder / f"{stem}.gguf", arch, data, tensors, kinds if isinstance(kinds, dict) else None)
    llama_cpp.record(gguf, engine_models.TOKENS, folder / f"{stem}.h5", outputs=outputs, threads=1, **fault.record)
    return reference, folder / f"{stem}.h5"


def judge(reference, candidate):
    """The report of `compare`, and how many seconds of CPU time it took: what a machine does beside it changes them little."""
    out = candidate.with_suffix(".report")
    done = program.run("compare", reference, candidate, "--out", out, timeout=1200)
    return json.loads((out / "report.json").read_text()), done.cpu_seconds


def row(name, report, seconds):
    """{column: value} of the table for one fault."""
    fault, first, counts = FAULTS[name], report["first_divergence"] or {}, report["counts"]
    said = " ".join([first.get("diagnosis") or "", *(f["cause"] for f in report["findings"] if f["first"] == first.get("path"))])
    return {"fault": name, "model": fault.model, "verdict": report["verdict"], "paired": sum(c["paired"] for c in report["coverage"].values()),
            "pass / fail / missing": f"{counts['pass']} / {counts['fail']} / {counts['missing']}", "first divergence": first.get("path", "–"),
            "at its module": "yes" if re.search(fault.where, first.get("path", "")) else "no",
            "named": "yes" if re.search(fault.named, said, re.I) else "no", "diagnosis": (first.get("diagnosis") or "–").replace("|", "/"),
            "CPU seconds": f"{seconds:.1f}"}


def markdown(rows):
    columns = list(rows[0])
    return "\n".join(["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *("| " + " | ".join(str(r[c]) for c in columns) + " |" for r in rows)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=list(FAULTS))
    parser.add_argument("--record-only", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    references, rows = {}, []
    for name in options.only or FAULTS:
        pair = record(name, options.folder, references)
        if options.record_only:
            continue
        rows.append(row(name, *judge(*pair)))
        print(rows[-1], flush=True)
    if options.markdown and rows:
        options.markdown.write_text(markdown(rows))


if __name__ == "__main__":
    sys.exit(main())
