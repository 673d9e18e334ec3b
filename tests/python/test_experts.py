"""Mixtures of experts in bf16: rows are chosen and put back between the router's cast and the value that shows it."""
import types

import nameless
import parity_probe
import pytest
import torch
import transformers
from spread_models import IDS, judged, spread


def moe():
    config = transformers.Qwen3MoeConfig(vocab_size=97, hidden_size=64, intermediate_size=96, moe_intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                                         num_experts=8, num_experts_per_tok=2, norm_topk_prob=True, use_cache=False)
    config._experts_implementation = "eager"
    return spread(transformers.Qwen3MoeForCausalLM(config)).bfloat16()


def router(normalised):
    """Its weights stay in fp32."""
    def forward(self, hidden):
        logits = torch.nn.functional.linear(hidden.reshape(-1, self.hidden_dim), self.weight)
        weights, chosen = torch.softmax(logits, -1, dtype=torch.float).topk(self.top_k)
        return logits, normalised(weights), chosen
    return forward


def port(model, file):
    """Its modules' results but the routers'."""
    with parity_probe.Writer(file) as writer:
        def write(path):
            def hook(module, arguments, result):
                writer.write(path, result)
            return hook
        for path, module in model.named_modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) or path.endswith(("norm", "mlp", "experts")):
                module.register_forward_hook(write(path))
        with torch.no_grad():
            model(IDS)
    return file


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return nameless.record(moe(), tmp_path_factory.mktemp("reference") / "reference.h5", {"input_ids": IDS})


@pytest.mark.parametrize("cast", [True, False], ids=["weights cast", "weights kept wide"])
def test_the_cast_of_the_weights(cast, reference, tmp_path):
    model = moe()
    gate = model.model.layers[0].mlp.gate
    gate.forward = types.MethodType(router(lambda w: (w / w.sum(-1, keepdim=True)).to(torch.bfloat16 if cast else torch.float)), gate)
    report, red = judged(reference, port(model, tmp_path / "port.h5"), tmp_path)
    kinds = {op["path"]: op["kind"] for op in report["ops"]}
    assert kinds["model.layers.0.mlp.experts"] == "Qwen3MoeExperts", "a router's softmax makes no attention"
    experts = set() if cast else {"model.layers.0.mlp.experts"}
    assert set(red) == experts and report["verdict"] == ("pass" if cast else "fail"), red
    assert all(row["gate"] == "dtype_path" and row["diagnosis"].startswith("missing rounding (_to_copy kept wide at model.layers.0.mlp.gate/_to_copy.1") for row in red.values()), red
