"""A port's places that no table has: they fail, and what is behind them is judged on the reference's own."""
import nameless
import parity_probe
import torch
from spread_models import saved, spread


class Pick(torch.nn.Module):
    def forward(self, x):
        return x.argmax(-1)


class Table(torch.nn.Module):
    """Which row of its table each input takes, the reference itself decides."""

    def __init__(self):
        super().__init__()
        self.scores, self.pick, self.table, self.after = torch.nn.Linear(16, 16), Pick(), torch.nn.Parameter(torch.empty(16, 16)), torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.after(self.table[self.pick(self.scores(x))])


def compared(tmp_path, row, fault=1, last="after"):
    model, x = spread(Table()), torch.randn(9, 16, generator=torch.Generator().manual_seed(0))
    reference = nameless.record(model, tmp_path / "ref.h5", {"x": x})
    with torch.no_grad():
        scores = model.scores(x)
        places = model.pick(scores)
        after = model.after(model.table[places]) * fault
    places[3] = row
    port = saved(tmp_path / "port.h5", {"scores": scores.numpy(), "pick": places.numpy(), last: after.numpy()})
    report, _ = nameless.compare(reference, port, tmp_path / "report")
    return report, {op["path"]: op["verdict"] for op in report["ops"]}


def test_places_fail_and_end_nothing(tmp_path):
    report, verdicts = compared(tmp_path, 77)
    assert verdicts == {"scores": "pass", "pick": "fail", "after": "pass"}
    assert any("index 77 is out of bounds" in warning for warning in report["warnings"]), report["warnings"]
    assert report["first_divergence"]["path"] == "pick"


def test_what_is_behind_them_is_judged(tmp_path):
    assert compared(tmp_path, 77, fault=1.01)[1] == {"scores": "pass", "pick": "fail", "after": "fail"}


def test_what_is_looked_for_on_the_ports_values_ends_nothing(tmp_path):
    """A name of its own, and values far off: where a pair is looked for, the reference runs on the port's values, too."""
    for fault, last in ((1, "head"), (-3, "head"), (-3, "after"), (1.5, "head")):
        report, verdicts = compared(tmp_path, 77, fault, last)
        assert verdicts["pick"] == "fail", (fault, last, verdicts, report["warnings"])
