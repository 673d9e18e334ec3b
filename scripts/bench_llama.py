#!/usr/bin/env python3
"""GPT-2 in llama.cpp, token by token: one round after one that warms up. What bench_gpt2.py starts for each of its rounds.

    bench_llama.py --format f32|bf16|q8_0 --model FILE.gguf --json OUT.json

FILE.gguf is made when it is not there: random weights of 124M's or --config's shapes, products' weights in the format, everything else in fp32. Cache and attention as
llama.cpp chooses by itself (a cache in fp16). Needs .venv-engines.
"""
import argparse
import ctypes
import json
import os
import struct
import sys
import time
from pathlib import Path

import gguf
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "probes/python"))
from parity_probe.engines.llama_cpp import library  # noqa: E402

GPT2_124M = dict(n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024)


def make(path, kind, config):
    dim, layers, random = config["n_embd"], config["n_layer"], np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "gpt2")
    for key, value in (("vocab_size", config["vocab_size"]), ("context_length", config["n_positions"]), ("embedding_length", dim), ("block_count", layers),
                       ("attention.head_count", config["n_head"]), ("feed_forward_length", 4 * dim)):
        writer.add_uint32(f"gpt2.{key}", value)
    writer.add_float32("gpt2.attention.layer_norm_epsilon", 1e-5)
    writer.add_tokenizer_model("no_vocab")
    stored = gguf.GGMLQuantizationType[kind.upper()]

    def product(name, *shape):
        weight = (0.02 * random.standard_normal(shape)).astype(np.float32)
        if stored == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, weight)
        else:
            writer.add_tensor(name, gguf.quants.quantize(weight, stored), raw_dtype=stored)

    def linear(name, out, into):
        product(f"{name}.weight", out, into)
        writer.add_tensor(f"{name}.bias", np.zeros(out, np.float32))

    def norm(name):
        writer.add_tensor(f"{name}.weight", np.ones(dim, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(dim, np.float32))

    product("token_embd.weight", config["vocab_size"], dim)
    writer.add_tensor("position_embd.weight", (0.02 * random.standard_normal((config["n_positions"], dim))).astype(np.float32))
    for i in range(layers):
        norm(f"blk.{i}.attn_norm"), linear(f"blk.{i}.attn_qkv", 3 * dim, dim), linear(f"blk.{i}.attn_output", dim, dim)
        norm(f"blk.{i}.ffn_norm"), linear(f"blk.{i}.ffn_up", 4 * dim, dim), linear(f"blk.{i}.ffn_down", dim, 4 * dim)
    norm("output_norm")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Llama:
    def __init__(self, path, positions, threads):
        self.found = library.load()
        self.api = self.found.api
        self.api.llama_get_logits_ith.restype, self.api.llama_get_logits_ith.argtypes = ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p, ctypes.c_int32]
        self.model = self.api.llama_model_load_from_file(os.fsencode(path), self.api.llama_model_default_params())
        if not self.model:
            sys.exit(f"bench_llama.py: {path}: {self.found.reason()}")
        self.words = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.model))
        self.params = self.api.llama_context_default_params()
        for offset in (self.found.fields.n_ctx, self.found.fields.n_batch, self.found.fields.n_ubatch):
            struct.pack_into("<I", self.params, offset, positions)
        self.threads, self.context = threads, None

    def restart(self):
        if self.context:
            self.api.llama_free(self.context)
        self.context, self.position = self.api.llama_init_from_model(self.model, self.params), 0
        if not self.context:
            sys.exit(f"bench_llama.py: {self.found.reason()}")
        self.api.llama_set_n_threads(self.context, self.threads, self.threads)

    def most_likely(self, tokens):
        batch = self.api.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, self.position + i, 1, 0
            batch.logits[i] = i == len(tokens) - 1
        status = self.api.llama_decode(self.context, batch)
        self.api.llama_batch_free(batch)
        if status:
            sys.exit(f"bench_llama.py: llama_decode: status {status}: {self.found.reason()}")
        self.position += len(tokens)
        return int(np.ctypeslib.as_array(self.api.llama_get_logits_ith(self.context, -1), (self.words,)).argmax())


def decoded(llama, prompt, tokens):
    """Milliseconds of the prompt, and of each token behind it."""
    llama.restart()
    start = time.perf_counter()
    word = llama.most_likely(prompt)
    first = 1000 * (time.perf_counter() - start)
    spent = []
    for _ in range(tokens):
        start = time.perf_counter()
        word = llama.most_likely([word])
        spent.append(1000 * (time.perf_counter() - start))
    return first, spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["f32", "bf16", "q8_0"], default="f32")
    parser.add_argument("--model", required=True)
    parser.add_argument("--config", help="config.json of another size")
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", required=True)
    args = parser.parse_args()
    config = json.loads(Path(args.config).read_text()) if args.config else GPT2_124M
    if not Path(args.model).exists():
        make(args.model + ".tmp", args.format, config)
        Path(args.model + ".tmp").replace(args.model)
    llama = Llama(args.model, max(32, args.prompt + args.tokens + 1), args.threads)
    prompt = np.random.default_rng(1).integers(0, llama.words, args.prompt).tolist()
    decoded(llama, prompt, args.tokens)
    first, spent = decoded(llama, prompt, args.tokens)
    Path(args.json).write_text(json.dumps(dict(prompt_milliseconds=first, milliseconds_by_position=spent)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
