"""One module of a decoder that computes a like formula: its row says which."""
import nameless
import pytest
import torch
from spread_models import IDS, granite, judged


class LayerNorm(torch.nn.Module):
    """For RMSNorm: the same gain, of what is less its mean."""
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, hidden):
        return self.norm(hidden - hidden.mean(-1, keepdim=True))


class QuickGelu(torch.nn.Module):
    def forward(self, gate):
        return gate * torch.sigmoid(1.702 * gate)


def normed(model):
    model.model.layers[1].input_layernorm = LayerNorm(model.model.layers[1].input_layernorm)


def activated(model):
    model.model.layers[1].mlp.act_fn = QuickGelu()


FAULTS = {"norm with mean (the mean is subtracted": (normed, "model.layers.1.input_layernorm"), "activation (x sigmoid(1.702 x) for SiLU": (activated, "model.layers.1.mlp.act_fn")}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", FAULTS)
def test_its_row_says_which(name, dtype, tmp_path):
    change, path = FAULTS[name]
    for side in ("reference", "port"):
        model = granite()
        if side == "port":
            change(model)
        nameless.record(model.to(dtype), tmp_path / f"{side}.h5", {"input_ids": IDS})
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path)
    assert report["first_divergence"]["path"].startswith(path) and report["first_divergence"]["diagnosis"].startswith(name), report["first_divergence"]
