"""Samples of several lengths: a batch with padding beside a call for each, as engines run prompts that PyTorch runs at once."""
import json

import h5py
import nameless
import numpy as np
import pytest
import torch
import transformers
from pairwise import pairwise
from spread_models import gpt2, judged, spread
from test_chunks import umt5
from test_padding import DTYPES, gpt_oss, qwen3

import parity_probe

LENGTHS = [7, 12, 4]
PADDED = 12
MODELS = {"GPT-2": gpt2, "Qwen3": qwen3, "gpt-oss": gpt_oss, "UMT5": umt5}


def prompts(lengths=LENGTHS):
    g = torch.Generator().manual_seed(3)
    return [torch.randint(4, 97, (1, length), generator=g) for length in lengths]


def one_batch(samples, in_front=False, padded=PADDED):
    """The arguments of all samples at once."""
    ids, mask = torch.full((len(samples), padded), 3), torch.zeros(len(samples), padded, dtype=torch.long)
    for i, tokens in enumerate(samples):
        place = slice(padded - tokens.shape[1], None) if in_front else slice(tokens.shape[1])
        ids[i, place], mask[i, place] = tokens[0], 1
    return {"input_ids": ids, "attention_mask": mask, **({"position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if in_front else {})}


def record(model, file, calls):
    """Each of these arguments a call."""
    with torch.no_grad(), parity_probe.record(model, file):
        for arguments in calls:
            model(**arguments)
    return file


def both(make, folder, batch_of, dtype=torch.float32, in_front=False, fault=lambda m: m, order=lambda samples: samples, **others):
    """(reference, port), of which `batch_of` runs all samples at once; `fault`: of the port."""
    files, samples = {}, prompts()
    for side in ("reference", "port"):
        model = make().to(dtype)
        at_once = side == batch_of
        calls = [{**one_batch(samples, in_front), **others}] if at_once else [{"input_ids": tokens} for tokens in order(samples)]
        files[side] = record(fault(model) if side == "port" else model, folder / f"{side}.h5", calls)
    return files["reference"], files["port"]


def said(report, batch_of, padded=PADDED):
    return any(f"the {batch_of} ran 3 samples as one batch padded to {padded} tokens" in warning for warning in report["warnings"])


LAST = {"GPT-2": "", "Qwen3": "", "gpt-oss": "", "UMT5": "encoder.final_layer_norm"}
CASES = {"GPT-2": ("GPT-2", False), "GPT-2, in front": ("GPT-2", True), "Qwen3, in front": ("Qwen3", True), "gpt-oss": ("gpt-oss", False), "UMT5": ("UMT5", False)}  # where the padding is


@pairwise(case=CASES, batch_of=["reference", "port"], dtype=DTYPES)
def test_samples_find_their_calls(case, batch_of, dtype, tmp_path):
    name, in_front = case
    report, red = judged(*both(MODELS[name], tmp_path, batch_of, dtype, in_front), tmp_path)
    assert report["verdict"] == "pass" and said(report, batch_of), (red, report["warnings"])
    rows = [op for op in report["ops"] if op["path"] == LAST[name]]
    assert len(rows) == (1 if batch_of == "reference" else 3) and all(op["candidate_path"] == LAST[name] for op in rows), rows


@pytest.mark.parametrize("batch_of", ["reference", "port"])
def test_samples_in_another_order(batch_of, tmp_path):
    report, red = judged(*both(gpt2, tmp_path, batch_of, order=lambda samples: [samples[i] for i in (2, 0, 1)]), tmp_path)
    assert report["verdict"] == "pass" and said(report, batch_of), red


def test_a_static_length_and_a_prompt_twice(tmp_path):
    samples = [*prompts([5, 9]), prompts([5])[0]]
    reference = record(umt5(), tmp_path / "reference.h5", [one_batch(samples, padded=16)])
    port = record(umt5(), tmp_path / "port.h5", [{"input_ids": tokens} for tokens in samples])
    report, red = judged(reference, port, tmp_path)
    assert report["verdict"] == "pass" and said(report, "reference", 16), red


def test_without_the_axis_of_the_batch(tmp_path):
    """An engine's arrays of tokens and features, prompt after prompt."""
    reference, port = both(gpt2, tmp_path, "reference")
    values = [(path, value[0]) for path, _, value in nameless.boundaries(port) if not path.startswith("op ") and value.ndim == 3]
    with parity_probe.Writer(tmp_path / "arrays.h5") as writer:
        for path, value in values:
            writer.write(path, np.ascontiguousarray(value))
    report, red = judged(reference, tmp_path / "arrays.h5", tmp_path)
    assert report["verdict"] == "pass" and said(report, "reference"), red
    assert report["counts"]["pass"] == len({path for path, _ in values} - {"transformer.wpe"}) > 20, report["counts"]  # its rows are no sample's


def module_results(recording):
    """[(path, array)] of every stored result of a module, call after call."""
    with h5py.File(recording) as dump:
        events = [json.loads(line) for line in bytes(dump["/trace/events"][()]).decode().splitlines()]
        paths = {event["id"]: event["path"] for event in events if event["e"] == "call"}
        returned = [(paths[event["id"]], event["outputs"][0]) for event in events if event["e"] == "ret" and event["outputs"]]
        return [(path, dump[f"/values/{value['k']}"][()]) for path, value in returned if path and value.get("k") is not None and value["d"] == "float32"]


def under_other_names(recording, file):
    """A number for each path, as an engine calls its tensors; each value once."""
    names = {}
    with parity_probe.Writer(file) as writer:
        for path, value in module_results(recording):
            writer.write(names.setdefault(path, f"t{len(names)}"), np.ascontiguousarray(value))
    return file, names


@pytest.mark.parametrize("batch_of", ["reference", "port"])
@pytest.mark.parametrize("name, in_front", CASES.values(), ids=CASES)
def test_under_names_of_its_own(name, in_front, batch_of, tmp_path):
    reference, port = both(MODELS[name], tmp_path, batch_of, in_front=in_front)
    named, names = under_other_names(port, tmp_path / "named.h5")
    report, red = judged(reference, named, tmp_path)
    assert report["verdict"] == "pass" and said(report, batch_of), (red, report["warnings"])
    assert report["counts"]["pass"] > .5 * len(names) * (1 if batch_of == "reference" else 3), (report["counts"], len(names))


def first_token_alone(model):
    forward = model.lm_head.forward
    model.lm_head.forward = lambda x: forward(x[:, :1])
    return model


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_logits_of_the_last_tokens(dtype, tmp_path):
    """What a generating engine computes."""
    reference = record(qwen3().to(dtype), tmp_path / "reference.h5", [one_batch(prompts(), in_front=True)])
    calls = [{"input_ids": tokens, "logits_to_keep": 1} for tokens in prompts()]
    report, red = judged(reference, record(qwen3().to(dtype), tmp_path / "port.h5", calls), tmp_path)
    assert report["verdict"] == "pass" and said(report, "reference"), (red, report["warnings"])
    assert [op["shape"] for op in report["ops"] if op["path"] == "lm_head"] == [[1, 3, 97]]
    report, _ = judged(reference, record(first_token_alone(qwen3().to(dtype)), tmp_path / "wrong.h5", [{**call, "logits_to_keep": 0} for call in calls]), tmp_path)
    assert report["verdict"] == "fail" and report["first_divergence"]["path"].startswith("lm_head"), report["first_divergence"]


def attends_to_padding(model):
    forward = model.forward
    model.forward = lambda attention_mask, **arguments: forward(attention_mask=torch.ones_like(attention_mask), **arguments)
    return model


def scale(model):
    model.transformer.h[2].attn.scaling *= 1.2
    return model


def eps(model):
    model.transformer.h[1].ln_2.eps = 1e-2
    return model


def positions_of_one(model):
    """The shortest prompt's alone."""
    forward = model.transformer.wpe.forward
    model.transformer.wpe.forward = lambda ids: forward(ids + (ids.shape[-1] == min(LENGTHS)))
    return model


FAULTS = {"attends to padding": (attends_to_padding, "port", "transformer.h.0.attn"), "scale": (scale, "reference", "transformer.h.2.attn"),
          "scale in the batch": (scale, "port", "transformer.h.2.attn"), "eps": (eps, "reference", "transformer.h.1.ln_2"),
          "positions of one prompt": (positions_of_one, "reference", "transformer.wpe")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_faults_are_found_at_their_module(fault, dtype, tmp_path):
    change, batch_of, place = FAULTS[fault]
    report, _ = judged(*both(gpt2, tmp_path, batch_of, dtype, in_front=True, fault=change), tmp_path)
    assert said(report, batch_of) and report["first_divergence"]["path"].startswith(place), report["first_divergence"]


@pytest.mark.parametrize("batch_of", ["reference", "port"])
def test_a_fault_under_names_of_its_own(batch_of, tmp_path):
    reference, port = both(gpt2, tmp_path, batch_of, in_front=True, fault=eps)
    named, names = under_other_names(port, tmp_path / "named.h5")
    report, _ = judged(reference, named, tmp_path)
    first = report["first_divergence"]
    assert said(report, batch_of) and first["path"].startswith("transformer.h.1.ln_2") and first["candidate_path"] == names["transformer.h.1.ln_2"], first


@pytest.mark.parametrize("batch_of", ["reference", "port"])
def test_lost_tokens_are_no_padding(batch_of, tmp_path):
    """Nothing masks them, and they differ."""
    whole, short = prompts([12, 12, 12]), [tokens[:, :length] for tokens, length in zip(prompts([12, 12, 12]), LENGTHS)]
    calls = {True: [{"input_ids": torch.cat(whole)}], False: [{"input_ids": tokens} for tokens in short]}
    reference = record(gpt2(), tmp_path / "reference.h5", calls[batch_of == "reference"])
    port = record(gpt2(), tmp_path / "port.h5", calls[batch_of == "port"])
    report, red = judged(reference, port, tmp_path)
    assert report["verdict"] != "pass" and not said(report, batch_of), report["warnings"]


@pytest.mark.parametrize("by_step", [False, True], ids=["sample after sample", "a step of each in turn"])
def test_samples_of_several_steps(by_step, tmp_path):
    steps = [prompts(), [tokens.flip(1) for tokens in prompts()]]
    singles = [tokens for step in steps for tokens in step] if by_step else [step[i] for i in range(len(LENGTHS)) for step in steps]
    reference = record(gpt2(), tmp_path / "reference.h5", [one_batch(step) for step in steps])
    port = record(gpt2(), tmp_path / "port.h5", [{"input_ids": tokens} for tokens in singles])
    report, red = judged(reference, port, tmp_path)
    assert report["verdict"] == "pass" and report["counts"]["pass"] > 100, (red, report["warnings"])


def test_an_encoder_s_prompts_in_calls_before_one_batch(tmp_path):
    """The encoder's modules alone are called more often than in the reference."""
    config = transformers.T5Config(vocab_size=97, d_model=48, d_kv=12, d_ff=80, num_layers=1, num_heads=4, decoder_start_token_id=0)
    model, samples = spread(transformers.T5ForConditionalGeneration(config)), prompts()
    batch, tokens = one_batch(samples), torch.stack([tokens[0, :3] for tokens in samples])
    reference, port = tmp_path / "reference.h5", tmp_path / "port.h5"
    with torch.no_grad(), parity_probe.record(model, reference):
        model(**batch, decoder_input_ids=tokens, use_cache=False)
    with torch.no_grad(), parity_probe.record(model, port):
        states = torch.zeros(len(samples), PADDED, 48)
        for i, sample in enumerate(samples):
            states[i, :sample.shape[1]] = model.encoder(sample).last_hidden_state[0]
        model(encoder_outputs=(states,), attention_mask=batch["attention_mask"], decoder_input_ids=tokens, use_cache=False)
    report, red = judged(reference, port, tmp_path)
    assert report["verdict"] == "pass", (red, report["warnings"])
