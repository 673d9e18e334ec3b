"""Ports that recorded anything at all, made by chance out of a right one: compare ends with a verdict (exit 0, 1 or 3), whatever it says."""
import random

import nameless
import numpy as np
import parity_probe
import program
import pytest
import torch
import transformers
from spread_models import spread

IDS = torch.arange(14).view(2, 7) % 61
MASK = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])


def gpt2():
    return spread(transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=61, n_positions=32, n_embd=24, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2)))


def mixtral():
    return spread(transformers.MixtralForCausalLM(transformers.MixtralConfig(vocab_size=61, hidden_size=24, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2,
                                                                             num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=2)))


def in_calls(model):
    model(IDS, use_cache=False)
    model(IDS.flip(1), use_cache=False)


MODELS = {"masked": (gpt2, lambda model: model(IDS, attention_mask=MASK, use_cache=False)), "calls": (gpt2, in_calls),
          "loop": (gpt2, lambda model: model.generate(IDS[:, :5], max_new_tokens=3, do_sample=False, pad_token_id=0)),
          "experts": (mixtral, lambda model: model(IDS, attention_mask=MASK, use_cache=False))}


@pytest.fixture(scope="module", params=MODELS)
def recorded(request, tmp_path_factory):
    make, run = MODELS[request.param]
    file, model = tmp_path_factory.mktemp("random") / "reference.h5", make()
    with torch.no_grad(), parity_probe.record(model, file):
        run(model)
    return request.param, file, [(path, np.array(value)) for path, _, value in nameless.boundaries(file)]


# Of an array its parts: what real ports do to values, and what nobody would.
def samples(chance, a):
    return [a[at:at + 1] for at in range(len(a))] if a.ndim else [a]


def chunks(chance, a):
    return [a[:, :2], a[:, 2:]] if a.ndim > 2 and a.shape[1] > 2 else [a]


def last_token(chance, a):
    return [a[:, -1:] if chance() < .5 else a[:, -1]] if a.ndim > 2 else [a]


def padded(chance, a):
    width = [(0, 0), (2, 0) if chance() < .5 else (0, 2)] + [(0, 0)] * (a.ndim - 2)
    return [np.pad(a, width, mode="edge" if a.size and chance() < .5 else "constant")] if a.ndim > 2 else [a]


def scaled(chance, a):
    return [a * [1.001, 2, 0, np.nan, 1e30][int(chance() * 5)]] if a.dtype == np.float32 and chance() < .2 else [a]


def of_another_dtype(chance, a):
    return [np.nan_to_num(a).clip(-9e3, 9e3).astype(["float16", "float64", "int64"][int(chance() * 3)])] if a.dtype == np.float32 and chance() < .5 else [a]


def odd(chance, a):
    return [[np.zeros((0, 3), np.float32), np.float32(1), np.ones((1, 1), np.float32), np.zeros_like(a)][int(chance() * 4)]] if chance() < .1 else [a]


CHANGES = [samples, chunks, padded, last_token, scaled, of_another_dtype, odd, lambda chance, a: [a[:, :-1]] if a.ndim > 1 and a.shape[1] > 2 else [a],
           lambda chance, a: [np.moveaxis(a, 1, -1)] if a.ndim > 2 else [a], lambda chance, a: [a.reshape(-1, a.shape[-1])] if a.ndim > 2 and a.size else [a],
           lambda chance, a: [a[0]] if a.ndim > 1 and len(a) == 1 else [a]]


def calls_of(parts, by_sample):
    """[(path, array)]: a part of each path, then the next of each; or all parts of a path one behind the other."""
    most = max((len(arrays) for _, arrays in parts), default=0)
    if not by_sample:
        return [(path, array) for path, arrays in parts for array in arrays]
    return [(path, array) for i in range(most) for path, arrays in parts for array in (arrays[i:i + 1] if len(arrays) == most else arrays if i == 0 else [])]


def made_by_chance(values, seed):
    rng = random.Random(seed)
    chance = rng.random
    changes, names, dropped, changed = [change for change in CHANGES if chance() < .25], rng.choice(["its own", "some", "theirs", "one"]), rng.choice([0, 0, .3, .8]), rng.choice([1, .7, .3])
    parts = []
    for path, value in values:
        if chance() < dropped or (path.startswith("op ") and seed % 2):
            continue
        arrays = [value]
        for change in changes if chance() < changed else []:
            arrays = [part for array in arrays for part in change(chance, array)]
        parts.append((path.removeprefix("op "), arrays))
    numbers = {path: f"t{i}" for i, (path, _) in enumerate(parts)}
    own = {"its own": 1, "some": .5, "theirs": 0, "one": .1}[names]
    for path, array in calls_of(parts, chance() < .5):
        yield (numbers[path] if chance() < own else "x" if names == "one" and chance() < .3 else path), np.ascontiguousarray(array)
        if chance() < .03:
            yield f"{path}_more", np.zeros([rng.randrange(4) for _ in range(rng.randrange(1, 4))], np.float32) + 1


SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_ends_with_a_verdict(recorded, seed, tmp_path):
    name, reference, values = recorded
    with np.errstate(all="ignore"), parity_probe.Writer(tmp_path / "port.h5") as port:
        for path, array in made_by_chance(values, seed):
            port.write(path, array)
    ended = program.run("compare", reference, tmp_path / "port.h5", "--quiet")
    assert ended.returncode in (0, 1, 3), (name, ended.returncode, ended.stderr[-300:])
