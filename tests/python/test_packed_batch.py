"""Samples one behind the other in one call, without padding, as engines run them (varlen attention), beside a batch with padding or a call for each."""
import numpy as np
import pytest
import torch
from pairwise import pairwise
from spread_models import judged, saved
from test_padding import DTYPES
from test_ragged_batch import LENGTHS, MODELS, module_results, one_batch, prompts, record

ALL = sum(LENGTHS)
SIDES = {"reference": ("batch", "packed"), "port": ("packed", "batch")}  # by the side that has the batch
CASES = {"GPT-2": ("GPT-2", False), "Qwen3, in front": ("Qwen3", True)}  # that transformers runs so itself; and whether the padding is in front


def packed(samples):
    """The arguments of all samples one behind the other: positions that begin anew say where."""
    return {"input_ids": torch.cat(samples, 1), "position_ids": torch.cat([torch.arange(tokens.shape[1]) for tokens in samples])[None]}


def calls_of(how, in_front, samples):
    if how == "packed":
        return [packed(samples)]
    return [one_batch(samples, in_front)] if how == "batch" else [{"input_ids": tokens} for tokens in samples]


def both(make, folder, reference, port, dtype=torch.float32, in_front=False, fault=lambda m: m, order=lambda samples: samples):
    """(reference, port), each of them "packed", "batch" or "calls"; `fault` and `order`: of the port."""
    first = record(make().to(dtype), folder / "reference.h5", calls_of(reference, in_front, prompts()))
    return first, record(fault(make().to(dtype)), folder / "port.h5", calls_of(port, in_front, order(prompts())))


def prompts_of(recording):
    """{path: arrays of tokens and features} of each module of a recording of single prompts."""
    values = {}
    for path, value in module_results(recording):
        if value.ndim == 3:
            values.setdefault(path, []).append(value[0])
    return {path: parts for path, parts in values.items() if len(parts) == len(LENGTHS)}


def arrays(recording, file, name=lambda i, path: path):
    """What an engine has: an array of all tokens for each module of a recording of single prompts."""
    joined = {name(i, path): np.concatenate(parts) for i, (path, parts) in enumerate(prompts_of(recording).items())}
    return saved(file, joined), len(joined)


def said(report, batch_of):
    return any(f"the {batch_of} ran 3 samples as one batch padded to 12 tokens, the" in warning and "one behind the other" in warning for warning in report["warnings"])


@pairwise(case=CASES, batch_of=["reference", "port"], dtype=DTYPES)
def test_beside_a_batch(case, batch_of, dtype, tmp_path):
    name, in_front = case
    sides = SIDES[batch_of]
    report, red = judged(*both(MODELS[name], tmp_path, *sides, dtype, in_front), tmp_path)
    assert report["verdict"] == "pass" and said(report, batch_of), (red, report["warnings"])
    assert [op["shape"][-2:] for op in report["ops"] if op["path"] == ""] == [[ALL, 97]]


@pytest.mark.parametrize("port", ["packed", "calls"])
@pytest.mark.parametrize("name, in_front", CASES.values(), ids=CASES)
def test_beside_a_call_for_each(name, in_front, port, tmp_path):
    report, red = judged(*both(MODELS[name], tmp_path, {"packed": "calls", "calls": "packed"}[port], port), tmp_path)
    assert report["verdict"] == "pass" and report["counts"]["pass"] > 100, (red, report["warnings"])


@pytest.mark.parametrize("batch_of", ["reference", "port"])
def test_samples_in_another_order(batch_of, tmp_path):
    sides = SIDES[batch_of]
    report, red = judged(*both(MODELS["Qwen3"], tmp_path, *sides, order=lambda samples: [samples[i] for i in (2, 0, 1)]), tmp_path)
    assert report["verdict"] == "pass" and said(report, batch_of), (red, report["warnings"])


@pairwise(name=["GPT-2", "gpt-oss"], reference=["batch", "calls"], own={"its names": False, "names of its own": True})
def test_arrays_of_tokens_and_features(name, reference, own, tmp_path):
    recorded, port = both(MODELS[name], tmp_path, reference, "calls")
    port, count = arrays(port, tmp_path / "arrays.h5", lambda i, path: f"t{i}" if own else path)
    report, red = judged(recorded, port, tmp_path)
    assert report["verdict"] == "pass" and (reference == "calls" or said(report, "reference")), (red, report["warnings"])
    assert report["counts"]["pass"] >= (count - 4) * (3 if reference == "calls" else 1), (report["counts"], count)


@pytest.mark.parametrize("last", [-1, -2])
def test_logits_of_the_last_tokens(last, tmp_path):
    """All that a serving engine computes, one row a prompt; the token before the last is a fault."""
    reference, port = both(MODELS["Qwen3"], tmp_path, "batch", "calls", in_front=True)
    values = prompts_of(port)
    written = {name: np.concatenate(values[name]) for name in ("model.embed_tokens", "model.norm")}
    written["lm_head"] = np.stack([part[last] for part in values["lm_head"]])
    report, red = judged(reference, saved(tmp_path / "arrays.h5", written), tmp_path)
    assert said(report, "reference") and set(red) == (set() if last == -1 else {"lm_head"}), (red, report["warnings"])


def test_a_serving_engine_s_own_names(tmp_path):
    """All tokens in the layers, each prompt's last before the logits."""
    reference, port = both(MODELS["Qwen3"], tmp_path, "batch", "calls", in_front=True)
    values = prompts_of(port)
    written = {f"t{i}": np.concatenate(parts) for i, (path, parts) in enumerate(values.items()) if path != "lm_head"}
    written["last_hidden"] = np.stack([part[-1] for part in values["model.norm"]])
    written["logits"] = np.stack([part[-1] for part in values["lm_head"]])
    report, red = judged(reference, saved(tmp_path / "engine.h5", written), tmp_path)
    paired = {op["candidate_path"] for op in report["ops"]}
    assert report["verdict"] == "pass" and said(report, "reference") and "logits" in paired and len(paired) > 30, (red, report["warnings"], paired)


def across_samples(model):
    """Every token sees all before it, those of other samples too."""
    forward = model.forward
    model.forward = lambda input_ids, position_ids: forward(input_ids, position_ids=position_ids, attention_mask=torch.ones(1, 1, ALL, ALL).tril().bool())
    return model


def positions_go_on(model):
    """Their embeddings alone: the mask is made from what the model is given."""
    forward = model.transformer.wpe.forward
    model.transformer.wpe.forward = lambda ids: forward(torch.arange(ids.shape[1])[None])
    return model


def eps(model):
    model.transformer.h[1].ln_2.eps = 1e-2
    return model


FAULTS = {"across samples": (across_samples, "transformer.h.0.attn"), "positions go on": (positions_go_on, "transformer"), "eps": (eps, "transformer.h.1.ln_2")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_faults_are_found_at_their_module(fault, dtype, tmp_path):
    change, place = FAULTS[fault]
    report, _ = judged(*both(MODELS["GPT-2"], tmp_path, "batch", "packed", dtype, fault=change), tmp_path)
    assert said(report, "reference") and report["first_divergence"]["path"].startswith(place), report["first_divergence"]


def test_a_model_that_takes_packed_samples_for_one(tmp_path):
    """gpt-oss with attention in steps does not look where positions begin anew."""
    report, _ = judged(*both(MODELS["gpt-oss"], tmp_path, "batch", "packed"), tmp_path)
    assert said(report, "reference") and report["first_divergence"]["path"].startswith("model.layers.0.self_attn"), report["first_divergence"]


def test_a_token_too_few_is_another_shape(tmp_path):
    reference, port = both(MODELS["GPT-2"], tmp_path, "batch", "calls")
    short = {path: np.concatenate(parts)[:-1] for path, parts in prompts_of(port).items()}
    report, _ = judged(reference, saved(tmp_path / "short.h5", short), tmp_path)
    assert report["verdict"] == "fail" and not said(report, "reference"), report["warnings"]
