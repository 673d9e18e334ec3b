"""Real parallel runs on torch.distributed (gloo), each rank a process that records itself: `launch` starts them, once for all cases of one world size.

As a program: shard_runs.py RANK WORLD FOLDER, which writes FOLDER/<case>.<dtype>/rank<RANK>.h5 for each case of that world size.
"""
import os
import pathlib
import subprocess
import sys

import torch
import torch.distributed as dist

import parity_probe

IDS = torch.arange(22).reshape(2, 11) * 7 % 96
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def llama(dtype):
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
                         initializer_range=.2)
    return LlamaForCausalLM(config).eval().to(dtype)


def gpt2(dtype):
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=96, n_positions=32, initializer_range=.2)).eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight, std=.2)
    return model.to(dtype)


def mixtral(dtype):
    from transformers import MixtralConfig, MixtralForCausalLM
    torch.manual_seed(0)
    config = MixtralConfig(hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
                           num_local_experts=4, num_experts_per_tok=2, initializer_range=.2)
    return MixtralForCausalLM(config).eval().to(dtype)


MODELS = {"llama": llama, "gpt2": gpt2, "mixtral": mixtral}


def record(model, path, ids=IDS, **options):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad(), parity_probe.record(model, path, level="module", **options):
        model(ids)


def after(module, change):
    """What `module` returns, changed; a tuple's first element."""
    def hook(_, __, out):
        return (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)
    module.register_forward_hook(hook)


def summed(x):
    x = x.clone()
    dist.all_reduce(x)
    return x


def gathered(x, axis):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts, axis)


def halves_exchanged(x, axis=0):
    return torch.cat(x.chunk(2, axis)[::-1], axis)


def narrowed(x):
    """Through bf16; of a bf16 tensor through fp8."""
    return x.to(torch.float8_e4m3fn if x.dtype == torch.bfloat16 else torch.bfloat16).to(x.dtype)


# Tensor parallel by PyTorch's own plans: weights are DTensors, the all-reduce is theirs.

def llama_plan(own=None):
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    plan = {"lm_head": ColwiseParallel(output_layouts=Replicate())}
    for layer in ("model.layers.0", "model.layers.1"):
        plan |= {f"{layer}.{name}": ColwiseParallel() for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")}
        plan |= {f"{layer}.{name}": RowwiseParallel() for name in ("self_attn.o_proj", "mlp.down_proj")}
    return plan | (own or {})


def llama_tp(dtype, mesh, path, before=None, behind=None, plan=None, ids=IDS, shard=None):
    from torch.distributed.tensor.parallel import parallelize_module
    model = llama(dtype)
    if before:
        before(model.model.layers)
    parallelize_module(model, mesh, llama_plan(plan))
    if behind:
        behind(model)
    record(model, path, ids, shard=mesh if shard is None else shard)


def axis_mesh(**axes):
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", tuple(axes.values()), mesh_dim_names=tuple(axes))


def unreduced():
    from torch.distributed.tensor import Partial
    from torch.distributed.tensor.parallel import RowwiseParallel
    return {"model.layers.1.self_attn.o_proj": RowwiseParallel(output_layouts=Partial())}


def ungathered():
    from torch.distributed.tensor.parallel import ColwiseParallel
    return {"lm_head": ColwiseParallel()}


def exchange_gate(layers):
    weight = layers[1].mlp.gate_proj.weight
    with torch.no_grad():
        weight.copy_(halves_exchanged(weight))


def on_rank(rank, change):
    return lambda *arguments: change(*arguments) if dist.get_rank() == rank else None


def narrow_weight(model):
    weight = model.model.layers[0].self_attn.k_proj.weight
    with torch.no_grad():
        weight._local_tensor.copy_(narrowed(weight._local_tensor))


def other_gain(model):
    with torch.no_grad():
        model.model.layers[1].input_layernorm.weight.mul_(1.125)


LLAMA = {
    "llama-tp": {},
    "llama-tp.all-reduce-missing": {"plan": unreduced},
    "llama-tp.all-reduce-doubled": {"behind": lambda model: after(model.model.layers[0].mlp.down_proj, summed)},
    "llama-tp.rank-order": {"before": exchange_gate},
    "llama-tp.gather-order": {"behind": lambda model: after(model.lm_head, lambda x: halves_exchanged(x, -1))},
    "llama-tp.gather-axis": {"plan": ungathered, "behind": lambda model: after(model.lm_head, lambda x: gathered(x, 1))},
    "llama-tp.shard-dtype": {"behind": on_rank(1, lambda model: after(model.model.layers[0].mlp.up_proj, narrowed))},
    "llama-tp.weight-dtype": {"behind": on_rank(1, narrow_weight)},
    "llama-tp.diverged": {"behind": on_rank(1, other_gain)},
}


def run_llama(options):
    def run(dtype, path):
        own = {**options, "plan": options["plan"]()} if "plan" in options else options
        llama_tp(dtype, axis_mesh(tp=dist.get_world_size()), path, **own)
    return run


# Tensor parallel by hand on plain tensors: the all-reduce stands behind the attention and the feed-forward module, so that c_proj is a partial sum.

def gpt2_tp(dtype, path, biases=1, reduced=("attn", "mlp"), specs=None):
    rank, world = dist.get_rank(), dist.get_world_size()
    model = gpt2(dtype)

    def part(x, axis, sections=1):
        return torch.cat([s.chunk(world, axis)[rank] for s in x.chunk(sections, axis)], axis).contiguous()
    for i, block in enumerate(model.transformer.h):
        for module, sections in ((block.attn.c_attn, 3), (block.mlp.c_fc, 1)):
            module.weight.data, module.bias.data = part(module.weight.data, 1, sections), part(module.bias.data, 0, sections)
            module.nf = module.bias.numel()
        for name, module in (("attn", block.attn.c_proj), ("mlp", block.mlp.c_proj)):
            module.weight.data = part(module.weight.data, 0)
            if rank >= biases:
                module.bias.data.zero_()
            if name in reduced or i == 0:
                after(getattr(block, name), summed)
        block.attn.split_size //= world
    record(model, path, shard={"mesh": {"tp": world}, "at": {"tp": rank}, "specs": specs or {}})


# Expert parallel: each rank computes its own experts' share, and the shares are added up.

def mixtral_ep(dtype, path, reduce=True, owner=lambda expert, world: expert % world):
    rank, world = dist.get_rank(), dist.get_world_size()
    model = mixtral(dtype)
    for i, layer in enumerate(model.model.layers):
        experts = layer.mlp.experts
        original = experts.forward

        def forward(hidden_states, top_k_index, top_k_weights, original=original, count=4, reduce=reduce or i == 0):
            mine = torch.tensor([owner(e, world) == rank for e in range(count)])[top_k_index]
            share = original(hidden_states, top_k_index, top_k_weights * mine)
            return summed(share) if reduce else share
        experts.forward = forward
    record(model, path, shard={"mesh": {"ep": world}, "at": {"ep": rank}})


# Data parallel, and both together: the batch is divided over dp.

def hybrid(dtype, path, exchanged=False, **options):
    mesh = axis_mesh(dp=2, tp=2)
    at = mesh.get_coordinate()[0]
    llama_tp(dtype, mesh["tp"], path, ids=IDS.chunk(2)[1 - at if exchanged else at], shard=mesh, **options)


def data_parallel(dtype, path, own=lambda model: None):
    model = llama(dtype)
    own(model)
    rank, world = dist.get_rank(), dist.get_world_size()
    record(model, path, IDS.chunk(world)[rank], shard={"mesh": {"dp": world}, "at": {"dp": rank}, "specs": {"*": {"dp": "split(0)"}, "*rotary_emb*": {"dp": "replicated"}}})


CASES = {
    2: {name: run_llama(options) for name, options in LLAMA.items()} | {
        "gpt2-tp": gpt2_tp,
        "gpt2-tp.bias": lambda dtype, path: gpt2_tp(dtype, path, biases=2),
        "gpt2-tp.all-reduce-missing": lambda dtype, path: gpt2_tp(dtype, path, reduced=("attn",)),
        "llama-dp": data_parallel,
    },
    4: {
        "hybrid": hybrid,
        "hybrid.all-reduce-missing": lambda dtype, path: hybrid(dtype, path, plan=unreduced()),
        "hybrid.batch-order": lambda dtype, path: hybrid(dtype, path, exchanged=True),
        "mixtral-ep": mixtral_ep,
        "mixtral-ep.all-reduce-missing": lambda dtype, path: mixtral_ep(dtype, path, reduce=False),
    },
}


def launch(world, folder):
    """Runs all cases of a world size; raises when a rank fails."""
    log = [open(folder / f"rank{rank}.{world}.log", "w") for rank in range(world)]
    ranks = [subprocess.Popen([sys.executable, __file__, str(rank), str(world), str(folder)], stdout=log[rank], stderr=subprocess.STDOUT,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}) for rank in range(world)]
    for rank, process in enumerate(ranks):
        assert process.wait(timeout=600) == 0, (folder / f"rank{rank}.{world}.log").read_text()[-3000:]


def main(rank, world, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous.{world}", rank=rank, world_size=world)
    for name, run in CASES[world].items():
        for dtype in DTYPES:
            run(DTYPES[dtype], folder / f"{name}.{dtype}" / f"rank{rank}.h5")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]))
