"""One side runs in several calls what the other runs at once: a prompt in chunks on a cache, as engines do, samples, guidance."""
import itertools

import diffusers
import nameless
import numpy as np
import parity_probe
import pytest
import spread_models
import torch
import transformers
from pairwise import pairwise
from spread_models import IDS, gpt2, granite, record, spread

CHUNKS = {"two chunks": (6, 5), "a prompt, then token by token": (9, 1, 1)}


def run_in_chunks(model, file, chunks, late=0):
    """Real code on a real cache; `late`: the positions of all but the first chunk are off by so many."""
    with torch.no_grad(), parity_probe.record(model, file):
        cache, start = None, 0
        for length in chunks:
            at = torch.arange(start, start + length)[None]
            out = model(input_ids=IDS[:, start:start + length], position_ids=at + (late if start else 0), past_key_values=cache, use_cache=True)
            cache, start = out.past_key_values, start + length
    return file


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_a_prompt_in_chunks_is_joined(chunks, tmp_path):
    reference = record(gpt2(), tmp_path / "reference.h5")
    report, rows = nameless.compare(reference, run_in_chunks(gpt2(), tmp_path / "port.h5", chunks), tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert any(f"the port ran in {len(chunks)} chunks" in warning for warning in report["warnings"]), report["warnings"]
    assert {f"transformer.h.{i}.{part}" for i in range(4) for part in ("attn", "mlp", "ln_1")} <= set(rows)


def test_a_fault_of_the_second_chunk_alone(tmp_path):
    reference = record(gpt2(), tmp_path / "reference.h5")
    report, _ = nameless.compare(reference, run_in_chunks(gpt2(), tmp_path / "port.h5", (6, 5), late=1), tmp_path / "report")
    assert report["first_divergence"]["path"].startswith("transformer.wpe"), report["first_divergence"]
    worst = next(op for op in report["ops"] if op["path"] == report["first_divergence"]["path"])["forced"]["worst_index"]
    assert worst[1] >= 6, worst


# Guidance in two calls, or a loop over the batch: each model's own modules and ops, some called several times (an activation that all blocks share).
def wan():
    return spread(diffusers.WanTransformer3DModel(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=24, in_channels=4, out_channels=4, text_dim=32,
                                                  freq_dim=32, ffn_dim=96, num_layers=2, cross_attn_norm=True, rope_max_seq_len=64))


def vae():
    return spread_models.vae(channels=(32, 64), groups=8, size=32).decoder


def umt5():
    return spread(transformers.UMT5EncoderModel(transformers.UMT5Config(vocab_size=97, d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4)))


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


SAMPLES = {"Wan": (wan, (noise(3, 4, 3, 6, 8), torch.tensor([700, 700, 700]), noise(3, 11, 32))), "VAE": (vae, (noise(3, 4, 9, 11),)),
           "UMT5": (umt5, (torch.arange(72).view(3, 24) % 97, torch.tensor([[1] * n + [0] * (24 - n) for n in (9, 15, 24)])))}


def sample_by_sample(model, inputs, file, calls=(1, 1, 1), before=None):
    with torch.no_grad(), parity_probe.record(model, file):
        for call, samples in enumerate(zip(*(i.split(calls) for i in inputs))):
            if before:
                before(model, call)
            model(*samples)
    return file


@pairwise(calls=[(1, 1, 1), (2, 1)], name=list(SAMPLES), dtype=[torch.float32, torch.bfloat16])
def test_a_batch_in_several_calls_is_joined(calls, name, dtype, tmp_path):
    make, inputs = SAMPLES[name]
    model, inputs = make().to(dtype), [i.to(dtype) if i.is_floating_point() else i for i in inputs]
    reference, port = sample_by_sample(model, inputs, tmp_path / "ref.h5", calls=(3,)), sample_by_sample(model, inputs, tmp_path / "port.h5", calls)
    report, rows = nameless.compare(reference, port, tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert any(f"the port ran in {len(calls)} chunks" in warning for warning in report["warnings"]), report["warnings"]
    assert report["counts"]["pass"] > 80


def test_a_fault_of_the_second_sample_alone(tmp_path):
    model, inputs = wan(), SAMPLES["Wan"][1]
    reference = sample_by_sample(model, inputs, tmp_path / "ref.h5", calls=(3,))

    def scaled(model, call):
        model.blocks[1].attn2.to_v.weight.mul_({1: 1.01, 2: 1 / 1.01}.get(call, 1))

    report, _ = nameless.compare(reference, sample_by_sample(model, inputs, tmp_path / "port.h5", before=scaled), tmp_path / "report")
    assert report["first_divergence"]["path"].startswith("blocks.1.attn2.to_v"), report["first_divergence"]
    first = next(op for op in report["ops"] if op["path"] == report["first_divergence"]["path"])
    assert first["forced"]["worst_index"][0] // (first["shape"][0] // 3) == 1


def under_own_names(recording, file):
    """Its modules' results, each module under a number that all its calls have."""
    nameless.rewrite(recording, file, nameless.numbered(), lambda path: not path.startswith("op "))
    return file


# Guidance: diffusers' Wan pipelines call the model with the prompt, then with the negative one; most others, once with both. A sampler's steps around it.
def guided(model, file, order=(0, 1), batch=False, steps=2, before=None, seen=None):
    model.eval()
    latents, prompts = noise(1, 4, 3, 6, 8), [noise(1, 11, 32), noise(1, 11, 32) + noise(1, 1, 32)]
    dtype = next(model.parameters()).dtype
    latents, prompts = latents.to(dtype), [p.to(dtype) for p in prompts]
    with torch.no_grad(), parity_probe.record(model, file):
        for step in range(steps):
            time, prompt = torch.tensor([900 - 300 * step]), [prompts[i] for i in order]
            if batch:
                guesses = model(torch.cat([latents] * 2), time.repeat(2), torch.cat(prompt))[0].chunk(2)
            else:
                guesses = []
                for p in prompt:
                    if before:
                        before(model, step, order[len(guesses)])
                    guesses.append(model(latents, time, p)[0])
            with_prompt, without = (guesses[order.index(i)] for i in (0, 1))
            latents = latents - .1 * (without + 3 * (with_prompt - without))
            if seen:
                seen(latents)
    return file


@pytest.mark.parametrize("order, dtype", [((0, 1), torch.float32), ((1, 0), torch.bfloat16)])
@pytest.mark.parametrize("in_calls", ["reference", "port"])
def test_guidance_in_calls_and_in_a_batch(in_calls, order, dtype, tmp_path):
    model = wan().to(dtype)
    reference = guided(model, tmp_path / "ref.h5", batch=in_calls == "port")
    port = guided(model, tmp_path / "port.h5", order, batch=in_calls == "reference")
    report, rows = nameless.compare(reference, port, tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert any(f"the {in_calls} ran in 2 chunks (1 + 1)" in warning for warning in report["warnings"]), report["warnings"]
    assert any("in another order: 1, 0" in warning for warning in report["warnings"]) == (order == (1, 0))
    calls = 4 if in_calls == "reference" else 2
    assert {op["call"] for op in report["ops"] if op["path"] == "blocks.1.attn2.to_k"} == set(range(calls))


def test_a_fault_of_the_calls_without_the_prompt_alone(tmp_path):
    def scaled(model, step, prompt):
        model.blocks[1].attn2.to_v.weight.mul_({(0, 1): 1.01, (1, 0): 1 / 1.01}.get((step, prompt), 1))

    model = wan()
    reference = guided(model, tmp_path / "ref.h5", batch=True)
    report, _ = nameless.compare(reference, guided(model, tmp_path / "port.h5", before=scaled), tmp_path / "report")
    assert report["first_divergence"]["path"].startswith("blocks.1.attn2.to_v") and report["first_divergence"]["call"] == 0
    first = next(op for op in report["ops"] if op["path"] == report["first_divergence"]["path"])
    assert first["forced"]["worst_index"][0] // (first["shape"][0] // 2) == 1


@pytest.mark.parametrize("in_calls", ["reference", "port"])
def test_guidance_under_names_of_the_port(in_calls, tmp_path):
    model = wan()
    reference = guided(model, tmp_path / "ref.h5", batch=in_calls == "port")
    named = guided(model, tmp_path / "named.h5", (1, 0), batch=in_calls == "reference")
    report, _ = nameless.compare(reference, under_own_names(named, tmp_path / "port.h5"), tmp_path / "report")
    assert report["counts"]["pass"] > 90 and report["counts"]["pass"] + report["counts"]["missing"] == len(report["ops"])
    assert {op["path"] for op in report["ops"] if op["verdict"] == "missing"} <= {"", "/clone.1"}  # the model's result, which was not handed over


# Without a cache: every token runs the whole prompt anew. What naive ports do, and what a reference does with use_cache=False.
def run_anew(model, file, chunks, late=0):
    with torch.no_grad(), parity_probe.record(model, file):
        for length in itertools.accumulate(chunks):
            model(input_ids=IDS[:, :length], position_ids=torch.arange(length)[None] + late * (length > chunks[0]), use_cache=False)
    return file


@pytest.mark.parametrize("anew", ["reference", "port"])
@pytest.mark.parametrize("make, dtype", [(gpt2, torch.float32), (granite, torch.bfloat16)])
def test_each_token_anew_beside_a_cache(make, anew, dtype, tmp_path):
    model, chunks = make().to(dtype), (7, 1, 1)
    runs = {"reference": run_in_chunks, "port": run_in_chunks, anew: run_anew}
    files = [runs[side](model, tmp_path / f"{side}.h5", chunks) for side in ("reference", "port")]
    report, rows = nameless.compare(*files, tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert any(f"the {anew} ran anew" in warning for warning in report["warnings"]), report["warnings"]
    assert {op["call"] for op in report["ops"] if op["path"].endswith(".1.mlp")} == set(range(len(chunks)))


@pytest.mark.parametrize("anew", ["reference", "port"])
def test_a_cache_whose_positions_are_late(anew, tmp_path):
    chunks = (7, 1, 1)
    runs = {"reference": run_in_chunks, "port": run_in_chunks, anew: run_anew}
    files = [runs[side](gpt2(), tmp_path / f"{side}.h5", chunks, late=side == "port") for side in ("reference", "port")]
    report, _ = nameless.compare(*files, tmp_path / "report")
    assert report["first_divergence"]["path"].startswith("transformer.wpe") and report["first_divergence"]["call"] == 1


@pytest.mark.parametrize("in_chunks", ["reference", "port"])
def test_a_cache_under_names_of_the_port(in_chunks, tmp_path):
    runs = {"reference": record, "port": record, in_chunks: lambda model, file: run_in_chunks(model, file, (9, 1, 1))}
    reference, named = runs["reference"](gpt2(), tmp_path / "ref.h5"), runs["port"](gpt2(), tmp_path / "named.h5")
    report, _ = nameless.compare(reference, under_own_names(named, tmp_path / "port.h5"), tmp_path / "report")
    assert report["counts"]["pass"] == len(report["ops"]) > 35


def test_generate_beside_a_port_without_a_cache(tmp_path):
    """The reference has the logits of each call's last token alone; the port all of them."""
    model = granite()
    prompt = IDS[:, :7]
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5"):
        ids = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=3, do_sample=False, use_cache=True, eos_token_id=None, pad_token_id=0)
    for name, lengths in (("anew", range(7, 10)), ("at once", [9])):
        with torch.no_grad(), parity_probe.record(model, tmp_path / "port.h5"):
            for length in lengths:
                model(input_ids=ids[:, :length])
        report, _ = nameless.compare(tmp_path / "ref.h5", tmp_path / "port.h5", tmp_path / "report")
        assert report["verdict"] == "pass", (name, [op for op in report["ops"] if op["verdict"] != "pass"][:3])
        assert {op["call"] for op in report["ops"] if op["path"] == "lm_head"} == set(range(3))


def in_turn(model, file, samples, chunks):
    """Each group of samples from its prompt to its last token, then the next."""
    with torch.no_grad(), parity_probe.record(model, file):
        for ids in samples:
            cache, start = None, 0
            for length in chunks:
                cache = model(input_ids=ids[:, start:start + length], past_key_values=cache, use_cache=True).past_key_values
                start += length
    return file


def mixtral():
    return spread(transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=97, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, max_position_embeddings=32)))


@pytest.mark.parametrize("make, chunks", [(granite, (7, 1, 1)), (mixtral, (11,)), (mixtral, (7, 1, 1))])
@pytest.mark.parametrize("in_calls", ["reference", "port"])
def test_samples_in_turn(in_calls, make, chunks, tmp_path):
    """A prompt with its tokens, then the next; and experts, to which each call gives other rows."""
    model = make()
    files = [in_turn(model, tmp_path / f"{side}.h5", IDS.split(1) if side == in_calls else [IDS], chunks) for side in ("reference", "port")]
    report, rows = nameless.compare(*files, tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    calls = len(chunks) * (2 if in_calls == "reference" else 1)
    assert {op["call"] for op in report["ops"] if op["path"].endswith("layers.1.mlp")} == set(range(calls))


def test_what_a_module_does_not_select_is_compared(tmp_path):
    """Longformer's attention asks by nonzero which tokens are global; its queries are of all tokens."""
    model = spread(transformers.LongformerModel(transformers.LongformerConfig(
        vocab_size=97, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, attention_window=[4, 4], max_position_embeddings=32, pad_token_id=1)))
    reference = record(model, tmp_path / "ref.h5")
    with torch.no_grad(), parity_probe.record(model, tmp_path / "port.h5"):
        for ids in IDS.split(1):
            model(input_ids=ids)
    report, _ = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert {f"encoder.layer.{i}.attention.self.{part}" for i in (0, 1) for part in ("query", "key", "value")} <= {op["path"] for op in report["ops"]}


def test_a_sum_over_the_batch_is_not_compared(tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x):
            return x * 2, (x > 0).sum(), x.square().mean()

    model, x = Model(), torch.cat([noise(1, 40), noise(1, 40).roll(1)])  # as many positive ones in each sample
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5"):
        model(x)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "port.h5"):
        for sample in x.split(1):
            model(sample)
    report, _ = nameless.compare(tmp_path / "ref.h5", tmp_path / "port.h5", tmp_path / "report")
    assert report["counts"]["fail"] == report["counts"]["shape"] == 0
    assert {"/sum.0", "[1]"} & {op["path"] for op in report["ops"] if op["verdict"] == "missing"}, report["counts"]


def test_a_name_of_the_port_s_own_beside_samples_in_calls(tmp_path):
    """Query, key and value in one product, a tensor that the reference has not, among names that both sides have: it crashed."""
    model, ids = gpt2(), torch.cat([IDS[:1], IDS[:1] + 1])
    with torch.no_grad(), parity_probe.record(model, tmp_path / "reference.h5"):
        model(ids)
    whole = sample_by_sample(gpt2(), (ids,), tmp_path / "whole.h5", (1, 1))
    calls = [(path, value) for path, _, value in nameless.boundaries(whole) if not path.startswith("op ")]
    with parity_probe.Writer(tmp_path / "port.h5") as port:
        for path, value in calls:
            port.write(path, np.ascontiguousarray(value))
            if path.endswith("ln_1"):
                port.write(path.replace("ln_1", "gate_and_up"), np.ascontiguousarray(np.repeat(value, 5, -1)[..., :77]))
    report, _ = nameless.compare(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path / "report")
    assert report["verdict"] == "pass" and report["counts"]["pass"] > 25, report["counts"]
