"""A wrong value that the port did not record makes all that is computed from it wrong at once: q, k and v; gate and up. In every layer, so that no other tells their names."""
import nameless
import numpy as np
import pytest
import torch
from test_pairing_faults import judged, llama, paired_wrongly

NORMS = {"input_layernorm": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "post_attention_layernorm": ["mlp.gate_proj", "mlp.up_proj"]}


def projections(path):
    return path.endswith(("_proj", "embed_tokens", "lm_head"))


def all_but_norms(path):
    return "norm" not in path


def other_gain(norm):
    def fault(model):
        for layer in model.model.layers:
            getattr(layer, norm).weight.data[::2] *= 3
    return fault


def up_before_gate(model):
    for layer in model.model.layers:
        mlp = layer.mlp
        mlp.forward = lambda x, mlp=mlp: mlp.down_proj(mlp.up_proj(x) * mlp.act_fn(mlp.gate_proj(x)))


@pytest.mark.parametrize("keep", [projections, all_but_norms])
@pytest.mark.parametrize("norm", NORMS)
def test_siblings_are_found_together(norm, keep, tmp_path):
    report, truth, rows = judged(llama, other_gain(norm), tmp_path, keep)
    assert report["first_divergence"]["path"] == f"model.layers.0.{NORMS[norm][0]}", report["first_divergence"]
    assert not paired_wrongly(truth, rows)
    found = {row["path"] for row in rows.values()}
    assert {f"model.layers.0.{path}" for path in NORMS[norm]} <= found and len(rows) > .75 * len(truth), sorted(set(truth.values()) - found)


def test_siblings_in_another_order(tmp_path):
    def fault(model):
        up_before_gate(model), other_gain("post_attention_layernorm")(model)
    report, truth, rows = judged(llama, fault, tmp_path, projections)
    assert report["first_divergence"]["path"] in ("model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj"), report["first_divergence"]
    assert not paired_wrongly(truth, rows) and len(rows) > .75 * len(truth), sorted(set(truth) - set(rows))


def test_of_a_right_port_nothing_is_tried(tmp_path):
    report, truth, rows = judged(llama, lambda model: None, tmp_path, all_but_norms)
    assert report["verdict"] == "pass" and len(rows) == len(truth), sorted(set(truth) - set(rows))


def test_what_nothing_follows_from_is_no_sibling(tmp_path):
    """Noise in the places of q, k and v, of which the port computed nothing."""
    torch.manual_seed(0)
    model, inputs = llama()
    reference = nameless.record(model.eval(), tmp_path / "reference.h5", inputs)
    noise = np.random.default_rng(5)
    truth = nameless.rewrite(reference, tmp_path / "candidate.h5", keep=lambda path: not path.startswith("op ") and projections(path),
                             layout=lambda path, array: noise.standard_normal(array.shape, np.float32) if path.endswith(tuple(NORMS["input_layernorm"])) else array)
    _, rows = nameless.compare(reference, tmp_path / "candidate.h5", tmp_path / "report")
    assert set(rows) == {name for name, path in truth.items() if not path.endswith(tuple(NORMS["input_layernorm"]))}, rows.keys()
