"""A model that draws random numbers: a port that draws others has a name for it where they are drawn, and what follows is judged by what the port drew."""
import json

import pytest
import torch
from torch import nn

import parity_probe
import program


class Sampled(nn.Module):
    """A latent with noise, as a VAE's encoder gives it, with dropout left on behind it."""

    def __init__(self, dropout, scale=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.mean, self.spread, self.out = nn.Linear(32, 48), nn.Linear(32, 48), nn.Linear(48, 40)
        self.dropout, self.scale = nn.Dropout(dropout), scale

    def forward(self, x):
        noise = torch.randn(x.size(0), 48, dtype=x.dtype)
        return self.out(self.dropout(self.mean(x) + self.scale * noise * torch.exp(.5 * self.spread(x))))


def judged(folder, dtype, dropout, seed, scale=1.0):
    x = torch.randn(24, 32, generator=torch.Generator().manual_seed(1)).to(dtype)
    for name, of, drawn in (("ref", 1.0, 1), ("port", scale, seed)):
        model = Sampled(dropout, of).to(dtype).train()
        torch.manual_seed(drawn)
        with torch.no_grad(), parity_probe.record(model, folder / f"{name}.h5"):
            model(x)
    program.run("compare", folder / "ref.h5", folder / "port.h5", "--json", folder / "r.json", "-q")
    return json.loads((folder / "r.json").read_text())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dropout", [0, .1])
def test_other_numbers_have_a_name_and_what_follows_is_judged(dtype, dropout, tmp_path):
    assert judged(tmp_path, dtype, dropout, seed=1)["verdict"] == "pass"
    report = judged(tmp_path, dtype, dropout, seed=2)
    red = {row["path"]: row["diagnosis"] for row in report["ops"] if row["verdict"] == "fail"}
    assert len(red) == 1 + (dropout > 0) and all(d.startswith("random numbers of its own") for d in red.values()), red
    assert report["first_divergence"]["path"] == next(iter(red)) and "randn" in next(iter(red))


def test_a_fault_behind_the_numbers_is_found(tmp_path):
    red = [row for row in judged(tmp_path, torch.float32, 0, seed=2, scale=1.25)["ops"] if row["verdict"] == "fail"]
    assert [row["diagnosis"].startswith("random") for row in red] == [True, False] and "randn" in red[0]["path"]
