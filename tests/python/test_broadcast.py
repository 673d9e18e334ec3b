"""What one side computes once for all samples, and the other for each."""
import nameless
import parity_probe
import pytest
import torch
from spread_models import IDS, gpt2


def run(file, positions):
    model = gpt2()
    with torch.no_grad(), parity_probe.record(model, file):
        model(input_ids=IDS, position_ids=positions)
    return file


ONCE, EACH = torch.arange(11)[None], torch.arange(11).repeat(2, 1)
LATE = EACH + torch.tensor([[0], [1]])  # the second sample's positions are off by one


@pytest.mark.parametrize("reference, port", [(ONCE, EACH), (EACH, ONCE)])
def test_positions_once_and_for_each_sample(reference, port, tmp_path):
    report, _ = nameless.compare(run(tmp_path / "ref.h5", reference), run(tmp_path / "port.h5", port), tmp_path / "report")
    assert report["verdict"] == "pass", [op for op in report["ops"] if op["verdict"] != "pass"][:3]
    assert "transformer.wpe" in {op["path"] for op in report["ops"]}


@pytest.mark.parametrize("reference, port", [(ONCE, LATE), (LATE, ONCE)])
def test_samples_that_differ_keep_their_shape(reference, port, tmp_path):
    report, _ = nameless.compare(run(tmp_path / "ref.h5", reference), run(tmp_path / "port.h5", port), tmp_path / "report")
    assert report["verdict"] == "fail" and report["first_divergence"]["path"].startswith("transformer.wpe")
    assert next(op for op in report["ops"] if op["path"] == "transformer.wpe")["verdict"] == "shape"


def test_a_table_without_the_batch(tmp_path):
    """A port's own table has no axis of samples at all."""
    reference = run(tmp_path / "ref.h5", EACH)
    nameless.rewrite(run(tmp_path / "named.h5", ONCE), tmp_path / "port.h5", lambda _, path: path, lambda path: not path.startswith("op "),
                     lambda path, array: array[0] if path == "transformer.wpe" else array)
    report, _ = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    assert next(op for op in report["ops"] if op["path"] == "transformer.wpe")["verdict"] == "pass"
