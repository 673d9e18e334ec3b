"""Conversions of a Wan checkpoint as people do them, and faults seeded into one, at any size.

    python tests/python/weight_faults.py FOLDER     writes reference.safetensors (fp32, the original's names, the 1.3B shapes: 5.7 GB),
                                                    honest.safetensors and faulty.safetensors (bf16, diffusers' names), expected.json
"""
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from reference_models.names import diffusers_name  # noqa: E402
from reference_models.wan_original import WanOriginal  # noqa: E402
from reference_models.weights import spread_weights  # noqa: E402

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
SMALL = dict(dim=64, ffn_dim=160, num_heads=4, text_dim=32, image_dim=40, rope_len=32)
REAL = dict(dim=1536, ffn_dim=8960, num_heads=12, num_layers=30, text_dim=4096)   # Wan2.1 T2V 1.3B


def original(layers=4, seed=3, **config):
    """A checkpoint under the original's names, fp32, every tensor random and of a real spread."""
    model = spread_weights(WanOriginal({**SMALL, "num_layers": layers, **config}, "wan"), seed)
    return {name: p.detach() for name, p in model.state_dict().items()}


def to_diffusers(state, dtype=None):
    return {diffusers_name(k): v.to(dtype or v.dtype).contiguous() for k, v in state.items()}


def to_jax(state):
    """Nested names, kernels (in, out), convolutions DHWIO, norms with a scale."""
    out = {}
    for name, x in state.items():
        name = name.replace("blocks.", "layers_")
        module, leaf = name.rsplit(".", 1)
        if leaf == "weight" and x.dim() == 1:
            out[module + ".scale"] = x
        elif leaf == "weight":
            out[module + ".kernel"] = (x.permute(2, 3, 4, 1, 0) if x.dim() == 5 else x.T).contiguous()
        else:
            out[name] = x
    return out


def to_fused(state):
    """Self-attention's q, k, v in one."""
    out = {k: v for k, v in state.items() if not any(f"self_attn.{p}." in k for p in "qkv")}
    for name in state:
        if ".self_attn.q." in name:
            out[name.replace(".q.", ".qkv.")] = torch.cat([state[name.replace(".q.", f".{p}.")] for p in "qkv"])
    return out


def to_stacked(state):
    """All blocks in one tensor with a leading axis, as a scan over layers keeps them."""
    out, layers = {}, 1 + max(int(k.split(".")[1]) for k in state if k.startswith("blocks."))
    for name, x in state.items():
        if name.startswith("blocks.0."):
            out["blocks." + name[9:]] = torch.stack([state[f"blocks.{i}.{name[9:]}"] for i in range(layers)])
        elif not name.startswith("blocks."):
            out[name] = x
    return out


def _noise(x, seed=11):
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).mul(0.02).to(x.dtype)


def _heads(n, heads):
    return torch.arange(n).view(heads, -1)[[1, 0, *range(2, heads)]].flatten()


def _missing(s, w, b, n, h):
    del s[f"{b}.ffn.net.2.bias"]
    return {".ffn.2.bias": "missing"}


def _extra(s, w, b, n, h):
    s[f"{b}.gate.weight"] = _noise(s[f"{b}.attn1.to_q.weight"])
    return {f"{b}.gate.weight": "extra"}


def _duplicated(s, w, b, n, h):
    s[f"{b}.attn1.to_out.0.weight"] = s[f"{n}.attn1.to_out.0.weight"].clone()
    return {".self_attn.o.weight": "wrong layer"}


def _duplicated_role(s, w, b, n, h):
    s[f"{b}.attn2.to_k.weight"] = s[f"{b}.attn2.to_q.weight"].clone()
    return {".cross_attn.k.weight": "duplicated"}


def _transposed(s, w, b, n, h):
    s[f"{b}.attn1.to_v.weight"] = s[f"{b}.attn1.to_v.weight"].T.contiguous()
    return {".self_attn.v.weight": "transposed"}


def _heads_permuted(s, w, b, n, h):
    x = s[f"{b}.attn2.to_q.weight"]
    s[f"{b}.attn2.to_q.weight"] = x[_heads(len(x), h)].contiguous()
    return {".cross_attn.q.weight": "rows permuted"}


def _columns_permuted(s, w, b, n, h):
    x = s[f"{b}.attn1.to_out.0.weight"]
    s[f"{b}.attn1.to_out.0.weight"] = x[:, _heads(len(x), h)].contiguous()
    return {".self_attn.o.weight": "rows permuted"}


def _rope_pairs(s, w, b, n, h):
    x = s[f"{b}.attn1.to_k.weight"]
    s[f"{b}.attn1.to_k.weight"] = x.view(h, -1, 2, x.shape[1]).transpose(1, 2).reshape(x.shape).contiguous()
    return {".self_attn.k.weight": "rows permuted"}


def _swap(s, a, b):
    s[a], s[b] = s[b], s[a]


def _q_k_swapped(s, w, b, n, h):
    _swap(s, f"{b}.attn1.to_q.weight", f"{b}.attn1.to_k.weight")
    return {".self_attn.q.weight": "swapped", ".self_attn.k.weight": "swapped"}


def _v_k_swapped(s, w, b, n, h):
    for leaf in ("weight", "bias"):
        _swap(s, f"{b}.attn1.to_v.{leaf}", f"{b}.attn1.to_k.{leaf}")
    return {f".self_attn.{p}.{leaf}": "swapped" for p in "kv" for leaf in ("weight", "bias")}


def _layers_swapped(s, w, b, n, h):
    wrong = {}
    for name in [k for k in s if k.startswith(b + ".")]:
        _swap(s, name, n + name[len(b):])
    for name in w:
        if name.startswith(b + "."):
            wrong[name] = wrong[n + name[len(b):]] = "wrong layer"
    return wrong


def _rounded(s, w, b, n, h):
    s[f"{b}.ffn.net.0.proj.weight"] = w[f"{b}.ffn.0.weight"].to(BF16).to(F32)
    return {".ffn.0.weight": "rounded"}


def _rounded_fp16(s, w, b, n, h):
    s[f"{b}.ffn.net.0.proj.weight"] = w[f"{b}.ffn.0.weight"].to(F16).to(F32)
    return {".ffn.0.weight": "rounded"}


def _truncated(s, w, b, n, h):
    x = w[f"{b}.self_attn.q.weight"].view(torch.int32).bitwise_and(-65536).view(F32)
    s[f"{b}.attn1.to_q.weight"] = x.to(s[f"{b}.attn1.to_q.weight"].dtype)
    return {".self_attn.q.weight": "truncated"}


def _scaled(s, w, b, n, h):
    s[f"{b}.attn1.to_q.weight"] = s[f"{b}.attn1.to_q.weight"] * 0.0883
    return {".self_attn.q.weight": "scaled"}


def _sign(s, w, b, n, h):
    s[f"{b}.attn2.to_v.bias"] = -s[f"{b}.attn2.to_v.bias"]
    return {".cross_attn.v.bias": "sign flipped"}


def _offset(s, w, b, n, h):
    s[f"{b}.attn1.norm_q.weight"] = (w[f"{b}.self_attn.norm_q.weight"] - 1).to(s[f"{b}.attn1.norm_q.weight"].dtype)
    return {".self_attn.norm_q.weight": "offset"}


def _zero(s, w, b, n, h):
    s[f"{b}.attn1.to_v.bias"] = torch.zeros_like(s[f"{b}.attn1.to_v.bias"])
    return {".self_attn.v.bias": "zero"}


def _constant(s, w, b, n, h):
    s[f"{b}.norm2.weight"] = torch.ones_like(s[f"{b}.norm2.weight"])
    return {".norm3.weight": "constant"}


def _nan(s, w, b, n, h):
    s[f"{b}.attn1.to_k.weight"] = s[f"{b}.attn1.to_k.weight"].clone()
    s[f"{b}.attn1.to_k.weight"][3, 5] = float("nan")
    return {".self_attn.k.weight": "nan"}


def _rows(s, w, b, n, h):
    x = s[f"{b}.ffn.net.0.proj.weight"] = s[f"{b}.ffn.net.0.proj.weight"].clone()
    x[[7, 100]] = _noise(x[[7, 100]])
    return {".ffn.0.weight": "rows differ"}


def _values(s, w, b, n, h):
    s[f"{b}.attn1.to_out.0.weight"] = _noise(s[f"{b}.attn1.to_out.0.weight"])
    return {".self_attn.o.weight": "values differ"}


def _shape(s, w, b, n, h):
    s[f"{b}.ffn.net.2.weight"] = s[f"{b}.ffn.net.2.weight"][:, :-8].contiguous()
    return {".ffn.2.weight": "shape"}


# Each changes block `b` of the candidate `s` (diffusers' names), given the reference `w`, another block `n` and the number of heads;
# returns {reference path, from the block on: fault}. The path of an extra tensor is its own.
FAULTS = {f.__name__[1:].replace("_", "-"): f for f in (
    _missing, _extra, _duplicated, _duplicated_role, _transposed, _heads_permuted, _columns_permuted, _rope_pairs, _q_k_swapped, _v_k_swapped,
    _layers_swapped, _rounded, _rounded_fp16, _truncated, _scaled, _sign, _offset, _zero, _constant, _nan, _rows, _values, _shape)}


def seed(name, candidate, reference, block, neighbour, heads):
    """{reference path: fault} of one fault, seeded into `candidate`."""
    b = f"blocks.{block}"
    found = FAULTS[name](candidate, reference, b, f"blocks.{neighbour}", heads)
    return {b + path if path.startswith(".") else path: fault for path, fault in found.items()}


def write_real(folder):
    from safetensors.torch import save_file
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    reference = original(**{k: v for k, v in REAL.items() if k != "num_layers"}, layers=REAL["num_layers"])
    save_file(reference, folder / "reference.safetensors")
    candidate = to_diffusers(reference, BF16)
    save_file(candidate, folder / "honest.safetensors")
    expected = {}
    for i, name in enumerate(FAULTS):   # each in a block of its own; the neighbours of two of them lie behind
        expected.update(seed(name, candidate, reference, i, 29 if name == "layers-swapped" else 28, REAL["num_heads"]))
    save_file(candidate, folder / "faulty.safetensors")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    write_real(sys.argv[1])
