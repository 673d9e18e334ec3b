"""A port that streams: GPT-2 of transformers under hooks, beside the recording of the same. Usage: watched_port.py ADDRESS FAULT WAIT PREFIX

FAULT: 1 scales one weight of layer 1. WAIT: before layer 2 the port waits until that file is there ("" does not wait), and says so. PREFIX: of its names.
What stops it is printed.
"""
import functools
import os
import sys
import time

import torch
import transformers

import parity_probe

FAULTY = "transformer.h.1.mlp.c_fc"


def gpt2():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.GPT2Config(n_layer=3, n_embd=48, n_head=4, vocab_size=97, n_positions=32, use_cache=False, initializer_range=.15, bos_token_id=1, eos_token_id=2)
    return transformers.GPT2LMHeadModel(config).eval(), torch.randint(0, 97, (2, 11), generator=torch.Generator().manual_seed(1))


def wait_for(file):
    print("waiting" if file else "going on", flush=True)
    while file and not os.path.exists(file):
        time.sleep(.02)


def send(writer, name, _, __, out):
    if isinstance(out, torch.Tensor):
        writer.write(name, out)


def run(address, fault, wait, prefix):
    model, ids = gpt2()
    if fault:
        model.get_submodule(FAULTY).weight.data.mul_(1.05)
    with torch.no_grad(), parity_probe.Writer(address, config=model.config.to_dict(), model="GPT2LMHeadModel", producer="watched_port") as w:
        w.write("transformer.wte.weight", model.transformer.wte.weight, role="weight")
        for name, module in model.named_modules():
            if name and not isinstance(module, torch.nn.ModuleList):
                module.register_forward_hook(functools.partial(send, w, prefix + name))
        model.transformer.h[2].register_forward_pre_hook(lambda *_: wait_for(wait))
        model(ids)


if __name__ == "__main__":
    try:
        run(sys.argv[1], sys.argv[2] == "1", sys.argv[3], sys.argv[4])
    except parity_probe.Stopped as stop:
        print(f"stopped at {stop.path} because {stop.diagnosis}")
        sys.exit(7)
