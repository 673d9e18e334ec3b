"""Ports that compute the logits, or their last layer, for the last token of a prompt alone, as engines that generate do."""
import types

import nameless
import numpy as np
import parity_probe
import pytest
import torch
import transformers
from spread_models import IDS, granite, judged, record


def last_layer_for_the_last_token(model):
    """Granite's last layer as its authors wrote it, but with the last token alone behind attention."""
    layer = model.model.layers[-1]

    def forward(self, hidden_states, **others):
        attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **others)
        residual = hidden_states[:, -1:] + attended[:, -1:] * self.residual_multiplier
        return residual + self.mlp(self.post_attention_layernorm(residual)) * self.residual_multiplier

    layer.forward = types.MethodType(forward, layer)
    return model


def gate_for_up(model):
    mlp = model.model.layers[-1].mlp
    mlp.gate_proj, mlp.up_proj = mlp.up_proj, mlp.gate_proj
    return model


def other_eps(model):
    model.model.norm.variance_epsilon = .05
    return model


PORTS = {"logits": (lambda m: m, {"logits_to_keep": 1}), "last layer": (last_layer_for_the_last_token, {})}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def run(change, arguments, file, dtype=torch.float32, fault=lambda m: m):
    return nameless.record(fault(change(granite().to(dtype))), file, {"input_ids": IDS, **arguments})


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_the_last_token_alone(port, dtype, tmp_path):
    reference = nameless.record(granite().to(dtype), tmp_path / "reference.h5", {"input_ids": IDS})
    report, red = judged(reference, run(*port, tmp_path / "port.h5", dtype), tmp_path)
    assert report["verdict"] == "pass", red
    assert next(op for op in report["ops"] if op["path"] == "lm_head")["shape"] == [2, 1, 97]
    assert any("the last of 11 tokens alone" in warning and "lm_head" in warning for warning in report["warnings"]), report["warnings"]


def test_logits_without_the_axis_of_tokens(tmp_path):
    reference = record(granite(), tmp_path / "reference.h5")
    with parity_probe.Writer(tmp_path / "port.h5") as port:
        *before, (_, _, result) = nameless.boundaries(record(granite(), tmp_path / "whole.h5"))
        for path, _, value in before:
            if not path.startswith("op "):
                port.write(path, value[:, -1] if path == "lm_head" else value)
        port.write("", result[:, -1])
    report, red = judged(reference, tmp_path / "port.h5", tmp_path)
    assert report["verdict"] == "pass", red


@pytest.mark.parametrize("fault, place", [(gate_for_up, "model.layers.3.mlp.gate_proj"), (other_eps, "model.norm/add.0")], ids=["gate for up", "eps"])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_a_fault_behind_the_last_full_value(fault, place, dtype, tmp_path):
    reference = nameless.record(granite().to(dtype), tmp_path / "reference.h5", {"input_ids": IDS})
    report, red = judged(reference, run(*PORTS["last layer"], tmp_path / "port.h5", dtype, fault), tmp_path)
    assert report["first_divergence"]["path"].startswith(place), (report["first_divergence"], red.keys())


def test_one_row_that_the_port_does_not_go_on_from_is_a_fault(tmp_path):
    """Every token is there behind it: the one row is an error of its shape."""
    reference = record(granite(), tmp_path / "reference.h5")
    with parity_probe.Writer(tmp_path / "port.h5") as port:
        for path, _, value in nameless.boundaries(record(granite(), tmp_path / "whole.h5")):
            if path in ("model.layers.2.mlp.up_proj", "model.layers.3.mlp", "lm_head"):
                port.write(path, value[:, -1:] if path.endswith("up_proj") else value)
    report, red = judged(reference, tmp_path / "port.h5", tmp_path)
    assert red["model.layers.2.mlp.up_proj"]["verdict"] == "shape", red


CALLS = {"chunks": (5, 5, 1), "a prompt, then tokens": (7, 1, 1, 1, 1)}  # and how many tokens each call has


def last_logits_of_calls(lengths, file, wrong=lambda i, row: row, keep=True):
    """All that a serving engine writes: the logits of each call's last token."""
    model, cache, end = granite(), transformers.DynamicCache(), 0
    rows = []
    model.lm_head.register_forward_hook(lambda module, inputs, output: rows.append(output[:, -1:]))
    with torch.no_grad(), parity_probe.Writer(file) as port:
        for i, length in enumerate(lengths):
            result = model(IDS[:, end:end + length], past_key_values=cache, use_cache=True).logits[:, -1:]
            end += length
            for path, row in (("lm_head", wrong(i, rows.pop())), ("", result)):
                port.write(path, np.ascontiguousarray(row if keep else row[:, 0]))
    return file


@pytest.mark.parametrize("keep", [True, False], ids=["with the axis of tokens", "without"])
@pytest.mark.parametrize("lengths", CALLS.values(), ids=CALLS)
def test_rows_of_calls_alone(lengths, keep, tmp_path):
    reference = nameless.record(granite(), tmp_path / "reference.h5", {"input_ids": IDS})
    report, red = judged(reference, last_logits_of_calls(lengths, tmp_path / "port.h5", keep=keep), tmp_path)
    rows = [sum(lengths[:i + 1]) - 1 for i in range(len(lengths))]
    assert report["verdict"] == "pass" and [op["shape"] for op in report["ops"] if op["path"] == "lm_head"] == [[2, len(rows), 97]], (red, report["warnings"])
    assert any(f"rows {', '.join(map(str, rows))} are compared" in warning for warning in report["warnings"]), report["warnings"]


WRONG_ROWS = {"one by a thousandth": lambda i, row: row * (1.001 if i == 2 else 1), "all by half": lambda i, row: row * 1.5, "samples exchanged": lambda i, row: row.roll(1, 0)}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_wrong_row_of_a_call(name, tmp_path):
    reference = nameless.record(granite(), tmp_path / "reference.h5", {"input_ids": IDS})
    report, red = judged(reference, last_logits_of_calls((7, 1, 1, 1, 1), tmp_path / "port.h5", WRONG_ROWS[name]), tmp_path)
    assert report["first_divergence"]["path"] == "lm_head" and red["lm_head"]["verdict"] == "fail", red
