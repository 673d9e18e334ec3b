"""A fault that touches a part of a tensor alone: its row says which, and a fault that touches all of it says nothing of the kind."""
import nameless
import pytest
import torch
from test_pairing_faults import llama

IDS = torch.randint(0, 97, (2, 12), generator=torch.Generator().manual_seed(1))
SAYS = "of the squared difference lies in "


def last_token(model):
    model.model.layers[1].mlp.register_forward_hook(lambda _, inputs, out: torch.cat([out[:, :-1], out[:, -1:] * 1.5], 1))


def one_head(model):
    model.model.layers[1].self_attn.q_proj.weight.data[16:32] *= 1.5


def one_sample(model):
    model.model.layers[1].input_layernorm.register_forward_hook(lambda _, inputs, out: torch.stack([out[0], out[1] * 1.5]))


def everywhere(model):
    model.model.layers[1].mlp.down_proj.weight.data *= 1.5


CASES = {"the last token": (last_token, "model.layers.1.mlp", "[:, 11]"), "a head": (one_head, "model.layers.1.self_attn.q_proj", "16:32]"),
         "a sample": (one_sample, "model.layers.1.input_layernorm", "[1]"), "everything": (everywhere, "model.layers.1.mlp", None)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("case", CASES)
def test_the_row_says_where(case, dtype, tmp_path):
    fault, place, where = CASES[case]

    def recorded(name, change):
        torch.manual_seed(0)
        model = llama()[0].eval().to(dtype)
        change(model)
        return nameless.record(model, tmp_path / name, {"input_ids": IDS})

    reference, port = recorded("reference.h5", lambda _: None), recorded("port.h5", fault)
    report, _ = nameless.compare(reference, port, tmp_path / "report")
    first = report["first_divergence"]
    assert first["path"].startswith(place), first
    said = first["diagnosis"].partition(SAYS)[2]
    assert said.endswith(where) if where else SAYS not in first["diagnosis"], first["diagnosis"]
