"""Loops that a recording holds whole: the next token picked from the last logits, inputs that repeat, rows of tokens and heads in chunks, a few numbers a step."""
import zlib

import nameless
import numpy as np
import parity_probe
import pytest
import torch
import transformers
from spread_models import IDS, gpt2, granite, judged, spread
from transformers.cache_utils import DynamicLayer
from transformers.models.granite import modeling_granite

PROMPT, STEPS = IDS[:, :8], 3


def last_alone(path, array):
    return array[:, -1:] if path == "lm_head" else array


def greedy(model, file, given=None):
    """The prompt and so many tokens, each the likeliest; `given`: those to go on with instead. Returns what it went on with."""
    ids, cache, picked = PROMPT, None, []
    with torch.no_grad(), parity_probe.record(model, file):
        for step in range(STEPS + 1):
            out = model(ids, past_key_values=cache, use_cache=True)
            cache, ids = out.past_key_values, out.logits[:, -1:].argmax(-1) if given is None else given[step]
            picked.append(ids)
    return picked


def as_port(recording, file, layout=lambda path, array: array):
    """Its modules' results alone, under the reference's names."""
    nameless.rewrite(recording, file, lambda _, path: path, lambda path: not path.startswith("op "), layout)
    return file


@pytest.mark.parametrize("layout", [lambda path, array: array, last_alone], ids=["all logits", "the last alone"])
def test_a_loop_that_picks_its_tokens(layout, tmp_path):
    greedy(gpt2(), tmp_path / "reference.h5")
    report, red = judged(tmp_path / "reference.h5", as_port(tmp_path / "reference.h5", tmp_path / "port.h5", layout), tmp_path)
    assert report["verdict"] == "pass", red
    assert [op["call"] for op in report["ops"] if op["path"] == "lm_head"] == list(range(STEPS + 1))


def test_a_wrong_port_that_is_given_the_tokens(tmp_path):
    """Its own logits would pick others; the tokens are the reference's all the same."""
    picked = greedy(gpt2(), tmp_path / "reference.h5")
    wrong = gpt2()
    wrong.lm_head.weight = torch.nn.Parameter(wrong.lm_head.weight.detach().roll(1, 0))
    assert not torch.equal(greedy(wrong, tmp_path / "own.h5")[0], picked[0])
    greedy(wrong, tmp_path / "wrong.h5", picked)
    report, red = judged(tmp_path / "reference.h5", as_port(tmp_path / "wrong.h5", tmp_path / "port.h5"), tmp_path)
    assert set(red) == {"lm_head"} and not any("folded" in op["diagnosis"] for op in report["ops"]), red
    assert report["counts"]["fail"] == STEPS + 1


def test_what_repeats_because_its_inputs_do_is_not_stale(tmp_path):
    def run(file, places):
        ids, cache = PROMPT, None
        with torch.no_grad(), parity_probe.record(model, file):
            for place in places:
                out = model(ids, position_ids=place, past_key_values=cache, use_cache=True)
                cache, ids = out.past_key_values, torch.full((2, 1), 5)
        return file

    model, prompt = gpt2(), torch.arange(8)[None]
    reference = run(tmp_path / "reference.h5", [prompt, *(torch.tensor([[n]]) for n in (8, 9, 10))])
    frozen = run(tmp_path / "frozen.h5", [prompt, *(torch.tensor([[8]]) for _ in range(3))])
    def rounded_otherwise(path, array):  # as another kernel would, the same in each call
        up = np.random.default_rng(zlib.crc32(path.encode())).random(array.shape) < .5
        return np.where(up, np.nextafter(array, np.float32(np.inf)), array) if path.startswith("transformer.h.") else array

    port = as_port(frozen, tmp_path / "port.h5", rounded_otherwise)
    report, _ = judged(reference, port, tmp_path)
    red = {(op["path"].removesuffix("/embedding.0"), op["call"]) for op in report["ops"] if op["verdict"] == "fail"}
    assert red == {("transformer.wpe", 2), ("transformer.wpe", 3)}, red


class HeadNorm(torch.nn.Module):
    """Of a token's heads, each a row, as Qwen3-Next's gated norm has them."""
    def __init__(self):
        super().__init__()
        self.before, self.norm, self.after = torch.nn.Linear(16, 24), torch.nn.RMSNorm(6), torch.nn.Linear(24, 16)

    def forward(self, x):
        heads = self.before(x)
        return self.after(self.norm(heads.reshape(-1, 6)).reshape(heads.shape))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("lengths", [(7, 6, 7, 1, 1), (22,), (1,) * 22], ids=["chunks", "at once", "tokens"])
def test_rows_of_tokens_and_heads(lengths, batch, tmp_path):
    torch.manual_seed(2)
    model, x = HeadNorm().eval(), torch.randn(batch, 22, 16)
    for file, parts in (("reference", (20, 1, 1)), ("run", lengths)):
        with torch.no_grad(), parity_probe.record(model, tmp_path / f"{file}.h5"):
            for part in x.split(parts, 1):
                model(part)
    report, red = judged(tmp_path / "reference.h5", as_port(tmp_path / "run.h5", tmp_path / "port.h5"), tmp_path)
    assert report["verdict"] == "pass", red
    assert [op["path"] for op in report["ops"] if op["verdict"] == "pass"].count("norm") == 3


class Decay(torch.nn.Module):
    """Of a state, a number a head and step: -exp(a) softplus(x + b), as Mamba 2 and the gated delta rule have it."""
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Parameter(torch.randn(4) - 1), torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return -self.a.exp() * torch.nn.functional.softplus(x + self.b)


@pytest.mark.parametrize("factor", [1, 1 + 2e-5])
def test_a_chain_of_functions_on_a_few_numbers(factor, tmp_path):
    """By numpy's functions; some of 300 honest draws are 3 units in the last place and more off."""
    torch.manual_seed(3)
    model = Decay()
    a, b = (p.detach().numpy() for p in (model.a, model.b))
    with torch.no_grad(), parity_probe.record(model, tmp_path / "reference.h5"), parity_probe.Writer(tmp_path / "port.h5") as port:
        for x in 1.5 * torch.randn(300, 1, 4):
            model(x)
            port.write("", -np.exp(a) * np.log1p(np.exp(x.numpy() + b)) * np.float32(factor))
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path)
    wrong = sum(op["verdict"] == "fail" for op in report["ops"])
    assert wrong == (0 if factor == 1 else 300), (wrong, red)


def without_the_newest_key(monkeypatch):
    own = torch.nn.functional.scaled_dot_product_attention

    def attention(query, key, value, *others, **named):
        if query.shape[-2] == 1:
            key, value, named["attn_mask"] = key[..., :-1, :], value[..., :-1, :], None
        return own(query, key, value, *others, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attention)


def stored(change):
    """The cache of a step under `change(old, new)`; what it keeps is right."""
    def fault(monkeypatch):
        own = DynamicLayer.update

        def update(self, key, value, *others, **named):
            old = self.values.clone() if self.is_initialized else None
            keys, values = own(self, key, value, *others, **named)
            return keys, values if old is None or not old.numel() else change(old, value)

        monkeypatch.setattr(DynamicLayer, "update", update)
    return fault


STEP_FAULTS = {"mask off by one (the newest key not seen": without_the_newest_key,
               "causal cache (the new value not stored (zeros)": stored(lambda old, new: torch.cat([old, torch.zeros_like(new)], -2)),
               "causal cache (the new value stored one place early": stored(lambda old, new: torch.cat([old[..., :-1, :], new, torch.zeros_like(new)], -2))}


@pytest.mark.parametrize("name", STEP_FAULTS)
def test_a_fault_of_a_cached_step_has_its_name(name, monkeypatch, tmp_path):
    picked = greedy(gpt2(), tmp_path / "reference.h5")
    STEP_FAULTS[name](monkeypatch)
    greedy(gpt2(), tmp_path / "wrong.h5", picked)
    report, _ = judged(tmp_path / "reference.h5", as_port(tmp_path / "wrong.h5", tmp_path / "port.h5"), tmp_path)
    first = report["first_divergence"]
    assert first["path"].startswith("transformer.h.0.attn") and first["call"] == 1 and first["diagnosis"].startswith(name), first


def rotated(change):
    def fault(monkeypatch):
        own = modeling_granite.apply_rotary_pos_emb
        monkeypatch.setattr(modeling_granite, "apply_rotary_pos_emb", lambda *values, **named: change(own, *values))
    return fault


def kept(change):
    """The cache under `change(values)` after each step: the next ones go on from it."""
    def fault(monkeypatch):
        own = DynamicLayer.update

        def update(self, key, value, *others, **named):
            keys, values = own(self, key, value, *others, **named)
            self.values = change(values)
            return keys, values

        monkeypatch.setattr(DynamicLayer, "update", update)
    return fault


KEPT_FAULTS = {"RoPE sign (rotated the other way": rotated(lambda own, q, k, cos, sin: own(q, k, cos, -sin)),
               "RoPE missing (not rotated": rotated(lambda own, q, k, cos, sin: (own(q, k, cos, sin)[0], k)),
               "causal cache (rolled by one": kept(lambda values: values.roll(1, -2))}


@pytest.mark.parametrize("name", KEPT_FAULTS)
def test_what_each_call_leaves_for_the_next_is_one_fault(name, monkeypatch, tmp_path):
    """The rows of all calls have its name: in the third the cache holds what two calls did wrong."""
    model = granite()
    model.config.use_cache = True
    picked = greedy(model, tmp_path / "reference.h5")
    KEPT_FAULTS[name](monkeypatch)
    greedy(model, tmp_path / "wrong.h5", picked)
    report, red = judged(tmp_path / "reference.h5", as_port(tmp_path / "wrong.h5", tmp_path / "port.h5"), tmp_path)
    rows = [op for op in report["ops"] if op["verdict"] == "fail"]
    assert {op["path"].split(".")[-1] for op in rows} == {"o_proj"} and {op["call"] for op in rows} >= {1, 2, 3}, red
    assert all(op["diagnosis"].startswith(name) and "explains 100 %" in op["diagnosis"] for op in rows), [op["diagnosis"] for op in rows]


def keys_rolled(monkeypatch):
    """In a step of one token, both the cached keys and the cached values: as a ring of fixed length holds them."""
    own = torch.nn.functional.scaled_dot_product_attention

    def rolled(cached):
        return torch.cat([cached[..., :-1, :].roll(1, -2), cached[..., -1:, :]], -2)

    def attention(query, key, value, *others, **named):
        if query.shape[-2] == 1:
            key, value = rolled(key), rolled(value)
        return own(query, key, value, *others, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attention)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keys_and_values_in_another_order_are_the_same_attention(dtype, monkeypatch, tmp_path):
    picked = greedy(gpt2().to(dtype), tmp_path / "reference.h5")
    keys_rolled(monkeypatch)
    model = gpt2().to(dtype)
    with parity_probe.Writer(tmp_path / "port.h5") as port:
        def writes(name, out):
            port.write(name, out if torch.is_tensor(out) else out[0])

        for name in [name for name, _ in model.named_modules() if name.endswith(("_fc", "_proj", "attn", "lm_head"))]:
            model.get_submodule(name).register_forward_hook(lambda _, __, out, name=name: writes(name, out))
        greedy(model, tmp_path / "run.h5", picked)
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path)
    assert report["verdict"] == "pass", red


@pytest.mark.parametrize("anew", ["reference", "port"])
def test_a_loop_behind_an_encoder_of_more_modules(anew, tmp_path):
    """One side without a cache, the port's names its own: most modules run once, and alike."""
    model = spread(transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=97, d_model=48, d_kv=12, d_ff=80, num_layers=4, num_decoder_layers=2, num_heads=4, decoder_start_token_id=0)))
    tokens = torch.cat([torch.zeros(2, 1, dtype=torch.long), IDS[:, :3]], 1)

    def run(file, cached):
        cache = None
        with torch.no_grad(), parity_probe.record(model, file):
            encoded = model.encoder(IDS)
            for length in range(1, 5):
                ids = tokens[:, :length][:, -1 if cached else 0:]
                cache = model(encoder_outputs=encoded, decoder_input_ids=ids, past_key_values=cache if cached else None, use_cache=cached).past_key_values
        return file

    files = {side: run(tmp_path / f"{side}.h5", side != anew) for side in ("reference", "port")}
    nameless.rewrite(files["port"], tmp_path / "own.h5", nameless.numbered(), lambda path: not path.startswith("op "))
    report, red = judged(files["reference"], tmp_path / "own.h5", tmp_path)
    assert report["verdict"] == "pass" and any(f"the {anew} ran anew" in warning for warning in report["warnings"]), (red, report["warnings"])
