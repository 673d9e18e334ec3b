"""compare --save-map: the pairs of a run as a map, and what has no counterpart, to be filled in."""
import itertools
import json
import re

import torch

import parity_probe
import program


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(24), torch.nn.Linear(24, 40), torch.nn.Linear(40, 24)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = torch.nn.ModuleList(Layer() for _ in range(4)), torch.nn.Linear(24, 50)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def renamed(path):
    """Of the reference's module, with no word in common."""
    for ours, theirs in (("layers.", "blk-"), (".norm", ".a"), (".up", ".b"), (".down", ".c"), ("head", "result_output")):
        path = path.replace(ours, theirs)
    return path


def record(tmp_path, name=renamed, kept=lambda path: True, change=lambda path, value: value):
    """ref.h5 and cand.h5: every module's output under another name."""
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(3, 7, 24)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5", level="module"):
        model(x)
    with torch.no_grad(), parity_probe.Writer(tmp_path / "cand.h5") as w:
        for path, module in model.named_modules():
            if path and path != "layers" and kept(path):
                module.register_forward_hook(lambda _, __, out, path=path: (w.write(name(path), change(path, out)), None)[1])
        model(x)


def record_calls(tmp_path, name, calls=3, kept=lambda path, call: True, change=lambda path, call, value: value):
    """The model runs so many times; the candidate's tensors are named by path, call and their number, in the order in which they are there."""
    torch.manual_seed(0)
    model, inputs = Model().eval(), [torch.randn(3, 7, 24) for _ in range(calls)]
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5", level="module"):
        for x in inputs:
            model(x)
    numbers = itertools.count()
    with torch.no_grad(), parity_probe.Writer(tmp_path / "cand.h5") as w:
        for call, x in enumerate(inputs):
            hooks = [module.register_forward_hook(lambda _, __, out, path=path: (w.write(name(path, call, next(numbers)), change(path, call, out)) if kept(path, call) else None, None)[1])
                     for path, module in model.named_modules() if path != "layers"]
            model(x)
            for hook in hooks:
                hook.remove()


def compare(tmp_path, *options, status=0):
    report = tmp_path / "r.json"
    done = program.run("compare", tmp_path / "ref.h5", tmp_path / "cand.h5", "--json", report, *options)
    assert done.returncode == status, done.stdout + done.stderr
    return (json.loads(report.read_text()), done.stdout) if report.exists() else (None, done.stderr)


def rows(report):
    return [(r["path"], r["call"], r.get("candidate_path"), r["pairing"]["rule"], r["verdict"]) for r in report["ops"] if r["pairing"]]


def rules(file):
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def test_the_pairs_of_a_run_without_names_come_back(tmp_path):
    record(tmp_path, change=lambda path, value: value.transpose(0, 1) if path.endswith(".up") else value.reshape(21, 40 if path.endswith(".up") else -1)
           if path.endswith(".down") else value)
    first, _ = compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    assert len(rows(first)) == 17 and not any(r[0] == r[2] for r in rows(first))
    written = rules(tmp_path / "pairs.map")
    assert "layers.{i}.norm = blk-{i}.a" in written and len(written) == 5  # numbers of layers are captured
    assert any(re.fullmatch(r"layers\.\{i\}\.up = blk-\{i\}\.b perm\(1,0,2\)", rule) for rule in written)
    again, _ = compare(tmp_path, "--map", tmp_path / "pairs.map")
    assert rows(again) == rows(first)
    assert all(r["pairing"]["witnesses"].startswith("map line") for r in again["ops"])


def test_what_has_no_counterpart_is_there_to_be_filled_in(tmp_path):
    other = torch.linspace(-1, 1, 60).reshape(5, 12)
    record(tmp_path, kept=lambda path: path != "layers.2.up", change=lambda path, value: other if path == "layers.1.up" else value)
    compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    text = (tmp_path / "pairs.map").read_text()
    assert "\n# layers.2.up = ?  # [3, 7, 40] fp32\n" in text and "\n# layers.1.up = ?  # [3, 7, 40] fp32\n" in text
    assert "\n# blk-1.b  # [5, 12] fp32\n" in text
    filled = re.sub(r"# (layers\.1\.up) = \?", r"\1 = blk-1.b", text)
    (tmp_path / "filled.map").write_text(filled)
    report, _ = compare(tmp_path, "--map", tmp_path / "filled.map", status=1)
    assert report["first_divergence"]["path"] == "layers.1.up"
    assert ("layers.1.up", "blk-1.b") in {(r["path"], r.get("candidate_path")) for r in report["ops"]}


def test_equal_names_need_no_rule_and_general_ones_do_not_reach_them(tmp_path):
    record(tmp_path, name=lambda path: path if path == "layers.1.norm" else renamed(path))
    first, _ = compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    assert ("layers.1.norm", "layers.1.norm") in {(r[0], r[2]) for r in rows(first)}
    assert not any("layers.{i}.norm" in rule or rule.startswith("layers.1.norm") for rule in rules(tmp_path / "pairs.map"))
    assert rows(compare(tmp_path, "--map", tmp_path / "pairs.map")[0]) == rows(first)


def test_tensors_without_a_program(tmp_path):
    import numpy as np
    rng = np.random.default_rng(0)
    ours = {f"h.{i}.{leaf}": rng.standard_normal((8, 12), np.float32) for i in range(3) for leaf in ("q", "k")}
    np.savez(tmp_path / "ref.npz", **ours)
    np.savez(tmp_path / "cand.npz", **{name.replace("h.", "block_").replace(".q", ".query").replace(".k", ".key"): value.T for name, value in ours.items()})
    options = ["compare", tmp_path / "ref.npz", tmp_path / "cand.npz", "--json", tmp_path / "r.json", "--quiet"]
    reports = []
    for more in (["--save-map", tmp_path / "pairs.map"], ["--map", tmp_path / "pairs.map"]):
        assert program.run(*options, *more).returncode in (0, 3)
        reports.append(json.loads((tmp_path / "r.json").read_text()))
    assert rules(tmp_path / "pairs.map") == ["h.{i}.q = block_{i}.query perm(1,0)", "h.{i}.k = block_{i}.key perm(1,0)"]
    assert len(rows(reports[0])) == 6 and rows(reports[0]) == rows(reports[1])


def test_calls_of_a_port_that_numbers_its_tensors(tmp_path):
    record_calls(tmp_path, lambda path, call, number: f"t{number}")
    first, _ = compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    assert len(rows(first)) == 54 and {r[1] for r in rows(first)} == {0, 1, 2}
    written = rules(tmp_path / "pairs.map")
    assert "layers.0.norm call(1) = t18" in written and '"" call(2) = t53' in written and len(written) == 54
    assert rows(compare(tmp_path, "--map", tmp_path / "pairs.map")[0]) == rows(first)
    (tmp_path / "wrong.map").write_text("layers.0.norm call(1) = t19\n")
    report, _ = compare(tmp_path, "--map", tmp_path / "wrong.map", status=1)
    assert (report["first_divergence"]["path"], report["first_divergence"]["call"]) == ("layers.0.norm", 1)


def test_calls_of_a_port_that_names_its_steps(tmp_path):
    record_calls(tmp_path, lambda path, call, number: f"step{call}/{renamed(path) or 'all'}", kept=lambda path, call: path)
    first, _ = compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    written = rules(tmp_path / "pairs.map")
    assert "layers.{i}.norm call({n}) = step{n}/blk-{i}.a" in written and len(written) == 5
    assert rows(compare(tmp_path, "--map", tmp_path / "pairs.map")[0]) == rows(first)


def test_calls_that_have_no_counterpart_are_not_given_one(tmp_path):
    other = torch.linspace(-1, 1, 60).reshape(5, 12)
    record_calls(tmp_path, lambda path, call, number: f"step{call}/{renamed(path)}", kept=lambda path, call: path,
                 change=lambda path, call, value: other if (path, call) == ("layers.2.up", 1) else value)
    first, _ = compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    assert "layers.2.up call(0) = step0/blk-2.b" in rules(tmp_path / "pairs.map")
    again, _ = compare(tmp_path, "--map", tmp_path / "pairs.map")
    assert rows(again) == rows(first) and ("layers.2.up", 1) not in {r[:2] for r in rows(again)}


def test_names_that_no_map_can_hold(tmp_path):
    record(tmp_path, name=lambda path: renamed(path) + " #1\n*" if path == "layers.1.norm" else renamed(path))
    compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    text = (tmp_path / "pairs.map").read_text()
    assert "# no rule, and looked for anew: layers.1.norm call 0 = blk-1.a #1\\n* call 0 (no map file can hold such a name)\n" in text
    assert all(" = " in line for line in rules(tmp_path / "pairs.map"))
    compare(tmp_path, "--map", tmp_path / "pairs.map")


def test_the_map_that_is_read_is_not_written_over(tmp_path):
    record(tmp_path)
    compare(tmp_path, "--save-map", tmp_path / "pairs.map")
    before = (tmp_path / "pairs.map").read_bytes()
    done = program.run("compare", tmp_path / "ref.h5", tmp_path / "cand.h5", "--map", tmp_path / "pairs.map", "--save-map", tmp_path / "pairs.map")
    assert done.returncode == 2 and "--save-map" in done.stderr and done.stderr.count("\n") == 1 and (tmp_path / "pairs.map").read_bytes() == before


def test_a_missing_counterpart_proposes_it(tmp_path):
    record(tmp_path, kept=lambda path: path in ("layers.0", "layers.1.norm"))
    report, out = compare(tmp_path, status=3)
    assert any(step["command"].endswith("--save-map pairs.map") for step in report["next"]) and "--save-map pairs.map" in out


class Heads(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x).unflatten(-1, (4, 6))


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.heads, self.out = torch.nn.Linear(24, 24), Heads(), torch.nn.Linear(24, 24)

    def forward(self, x):
        return self.out(self.heads(self.mix(x)).flatten(-2))


def test_a_map_holds_for_another_number_of_tokens(tmp_path):
    torch.manual_seed(0)
    model = Decoder().eval()
    for run, lengths in (("first", [7, 1, 1]), ("second", [9, 4, 1])):
        inputs = [torch.randn(1, n, 24) for n in lengths]
        with torch.no_grad(), parity_probe.record(model, tmp_path / f"{run}.h5", level="module"):
            for x in inputs:
                model(x)
        with torch.no_grad(), parity_probe.Writer(tmp_path / f"{run}-port.h5") as w:
            for call, x in enumerate(inputs):
                mixed = model.mix(x)
                heads = torch.sin(mixed)
                for name, value in (("t-a", mixed), ("t-b", heads[0]), ("t-c", model.out(heads))):  # heads side by side, no batch
                    w.write(name, value)
    reports = []
    for run, options in (("first", ["--save-map", tmp_path / "pairs.map"]), ("second", ["--map", tmp_path / "pairs.map"])):
        done = program.run("compare", tmp_path / f"{run}.h5", tmp_path / f"{run}-port.h5", "--json", tmp_path / "r.json", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        reports.append(json.loads((tmp_path / "r.json").read_text()))
    assert "heads = t-b reshape(1,-1,4,6)" in rules(tmp_path / "pairs.map")
    assert [r["pairing"]["witnesses"].startswith("map line") for r in reports[1]["ops"]] == [True] * len(reports[1]["ops"]) and len(reports[1]["ops"]) == len(reports[0]["ops"])
