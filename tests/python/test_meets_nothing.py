"""What compare is told and meets nothing in either side is said in a line: rules of a map, declared roundings; and a candidate that it cannot place."""
import torch

import parity_probe
from test_save_map import compare, record, renamed, rules


def warnings(report, word):
    return [w for w in report["warnings"] if word in w]


def test_rules_that_name_nothing_in_the_candidate(tmp_path):
    record(tmp_path)
    report, _ = compare(tmp_path, "--save-map", tmp_path / "good.map")
    assert not warnings(report, "map rules")
    good = (tmp_path / "good.map").read_text()
    (tmp_path / "typo.map").write_text(good.replace("blk-{i}.b", "blk-{i}.bb").replace("result_output", "result"))
    report, out = compare(tmp_path, "--map", tmp_path / "typo.map")
    assert warnings(report, "map rules") == ["2 of 5 map rules name tensors that the candidate lacks: 'blk-0.bb' (line 4), 'result' (line 7); see: parity-check inspect CAND"]
    assert "warning: 2 of 5 map rules" in out
    assert not warnings(compare(tmp_path, "--map", tmp_path / "good.map")[0], "map rules")


def test_one_map_serves_a_port_that_records_fewer_layers(tmp_path):
    record(tmp_path)
    compare(tmp_path, "--save-map", tmp_path / "good.map")
    assert "layers.{i}.up = blk-{i}.b" in rules(tmp_path / "good.map")
    record(tmp_path, kept=lambda path: "layers.0" not in path)
    assert not warnings(compare(tmp_path, "--map", tmp_path / "good.map")[0], "map rules")


def test_declarations_that_meet_nothing(tmp_path):
    record(tmp_path)
    report, _ = compare(tmp_path, "--accept-path", "layers.*.norm,no.such.*", "--accept-path", "extra rounding: no such value")
    (line,) = warnings(report, "--accept-path")
    assert line.startswith("--accept-path 'no.such.*', 'extra rounding: no such value' declared nothing: ") and "layers.*.norm" not in line
    assert not warnings(compare(tmp_path, "--accept-path", "layers.*.norm")[0], "--accept-path")
    assert not warnings(compare(tmp_path, "--accept-path", "no.such.*", "--layer", "layers.0*")[0], "--accept-path")  # may be of the other rows


def test_a_candidate_most_of_whose_tensors_have_no_reference(tmp_path):
    torch.manual_seed(1)
    record(tmp_path, name=lambda path: path, kept=lambda path: path == "head" or path.endswith(".norm"))
    assert not warnings(compare(tmp_path)[0], "most of the candidate's")
    with parity_probe.Writer(tmp_path / "cand.h5") as w:
        for i in range(4):
            w.write(f"other.{i}", torch.randn(5, 11))
        torch.manual_seed(0)
        from test_save_map import Model
        with torch.no_grad():
            w.write("head", Model().eval()(torch.randn(3, 7, 24)))
    report, out = compare(tmp_path)
    (line,) = warnings(report, "most of the candidate's")
    assert line.startswith("most of the candidate's tensors, 4 of 5, have no reference") and "(other.0, other.1, other.2, …)" in line
    assert "4 candidate tensors without reference (other.0, other.1, other.2, …)" in out


def configured(tmp_path, here, there):
    model = torch.nn.Linear(4, 4)
    for file, config in (("ref.h5", here), ("cand.h5", there)):
        model.config = config
        with torch.no_grad(), parity_probe.record(model, tmp_path / file):
            model(torch.ones(2, 4))
    return compare(tmp_path, status=3 if "eps" in here else 0)[0]


def test_configurations_that_differ_are_told_by_what_both_have(tmp_path):
    labels = {str(i): f"LABEL_{i}" for i in range(300)}
    here = {"eps": 1e-5, "layers": 2, "vision": {"width": 3, "labels": labels}, "only_here": labels, "transformers_version": "4.1"}
    there = {"eps": 1e-6, "layers": 2, "vision": {"width": 4, "labels": {**labels, "7": "x" * 99}}, "only_there": labels, "transformers_version": "4.2"}
    (line,) = warnings(configured(tmp_path, here, there), "configurations differ")
    assert line.startswith("the two recordings' model configurations differ: eps 1e-05 and 1e-06, vision.labels.7 \"LABEL_7\" and \"xxx")
    assert line.endswith("vision.width 3 and 4") and "only_" not in line and "4.1" not in line and len(line) < 200
    assert not warnings(configured(tmp_path, {"layers": 2, "more": 1}, {"layers": 2, "other": 1}), "configurations differ")
