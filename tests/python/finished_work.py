"""What the tests of --resume and of mpirun share: two recordings of a real model, and reports without what may differ."""
import json
import pathlib
import subprocess
import time

import torch
import transformers

import parity_probe
from program import BINARY

SECONDS = 300


def record_pair(folder):
    """(reference, port with the exact GELU in one layer and eager attention): GPT-2 of transformers in bf16, ten layers of width 48, batch 2."""
    config = transformers.GPT2Config(n_layer=10, n_embd=48, n_head=3, vocab_size=101, n_positions=24, use_cache=False)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval().to(torch.bfloat16)
    ids = torch.randint(0, 101, (2, 11), generator=torch.Generator().manual_seed(1))
    files = folder / "ref.h5", folder / "port.h5"
    with torch.no_grad():
        with parity_probe.record(model, files[0]):
            model(ids)
        model.set_attn_implementation("eager")
        model.transformer.h[1].mlp.act = torch.nn.GELU()
        with parity_probe.record(model, files[1]):
            model(ids)
    return files


def start(pair, json_file, *options, launcher=()):
    return subprocess.Popen([*launcher, BINARY, "compare", *pair, "--quiet", "--json", json_file, *options], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(process):
    """(exit status, standard error)"""
    _, err = process.communicate(timeout=SECONDS)
    return process.returncode, err


def units_of(json_file):
    return pathlib.Path(f"{json_file}.units")


def wait_for_units(process, json_file, count):
    """Until that many are finished; False when the process ended before."""
    while process.poll() is None:
        file = units_of(json_file)
        if file.exists() and file.read_bytes().count(b"\nunit ") >= count:
            return True
        time.sleep(.002)
    return False


def report(json_file):
    """Without times and the command line."""
    read = json.loads(pathlib.Path(json_file).read_text())
    return {key: value for key, value in read.items() if key not in ("seconds", "date", "command")}
