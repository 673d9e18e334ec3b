"""What other tools dump, as a side of `compare`: the same model recorded by parity_probe and by them is equal, a seeded fault is found, and damage is one line."""
import base64
import hashlib
import io
import json
import pathlib

import numpy as np
import pytest
import torch
import transformers
from transformers import model_addition_debugger_context

import parity_probe
import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
IDS = torch.randint(0, 31, (2, 6), generator=torch.Generator().manual_seed(1))


def gpt2(eps=1e-5):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_embd=24, n_head=3, vocab_size=31, n_positions=16, use_cache=False, initializer_range=.15, layer_norm_epsilon=eps)
    return transformers.GPT2LMHeadModel(config).eval()


def record(model, path):
    with torch.no_grad(), parity_probe.record(model, path):
        model(input_ids=IDS)
    return path


def debugger_tree(model, folder, use_repr=False):
    with torch.no_grad(), model_addition_debugger_context(model, debug_path=str(folder), do_prune_layers=False, use_repr=use_repr):
        model.forward(input_ids=IDS)
    return folder


def outputs_of(model):
    """Each module call's tensor, in the order in which calls end: [(path, class, call, tensor)]."""
    found, calls = [], {}

    def hook(path):
        def keep(module, _, output):
            output = output[0] if isinstance(output, tuple) else output
            if torch.is_tensor(output):
                found.append((path, type(module).__name__, calls.get(path, 0), output.clone()))
                calls[path] = calls.get(path, 0) + 1
        return keep
    handles = [module.register_forward_hook(hook(path)) for path, module in model.named_modules() if path]
    with torch.no_grad():
        model(input_ids=IDS)
    for handle in handles:
        handle.remove()
    return found


def msprobe_dump(model, folder, **entry):
    """In the shape of mindstudio-probe 26.2, level L0, task tensor; its own dump of this model was compared by hand."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    data = {}
    for path, kind, call, value in outputs_of(model):
        name = f"Module.{path}.{kind}.forward.{call}"
        torch.save(value, folder / "dump_tensor_data" / f"{name}.output.0.pt")
        data[name] = {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "data_name": f"{name}.input.0.pt"}], "input_kwargs": {},
                      "output": [{"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape), "data_name": f"{name}.output.0.pt", **entry}]}
    data["Module.lm_head.Linear.backward.0"] = {"input": [], "output": []}
    (folder / "dump.json").write_text(json.dumps({"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": "/elsewhere/dump_tensor_data", "data": data}))
    return folder


def run_results(model, path):
    """As polygraphy 0.53 writes it (tests/data/polygraphy_run_results.json is its own)."""
    def array(value):
        buffer = io.BytesIO()
        np.save(buffer, value.numpy())
        return {"values": {"array": base64.b64encode(buffer.getvalue()).decode(), "polygraphy_class": "ndarray"}, "polygraphy_class": "LazyArray"}
    outputs = {path: array(value) for path, _, call, value in outputs_of(model) if call == 0}
    path.write_text(json.dumps({"lst": [["runner", [{"outputs": outputs, "runtime": .1, "runner_name": "runner", "polygraphy_class": "IterationResult"}]]],
                                "polygraphy_class": "RunResults"}, indent=4))
    return path


TOOLS = {"transformers": lambda model, folder: debugger_tree(model, folder / "dbg"), "msprobe": lambda model, folder: msprobe_dump(model, folder / "msp"),
         "polygraphy": lambda model, folder: run_results(model, folder / "results.json")}


def compare(reference, candidate, out):
    done = program.run("compare", reference, candidate, "--json", out, "--quiet")
    return done, json.loads(out.read_text()) if out.exists() else None


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return record(gpt2(), tmp_path_factory.mktemp("reference") / "ref.h5")


@pytest.mark.parametrize("tool", TOOLS)
def test_the_same_model_is_equal_and_a_fault_is_found(tool, reference, tmp_path):
    done, report = compare(reference, TOOLS[tool](gpt2(), tmp_path), tmp_path / "good.json")
    assert done.returncode == 0, (done.stderr, report and report["counts"])
    paths = {op["path"] for op in report["ops"]}
    assert report["counts"]["pass"] == len(report["ops"]) >= 15 and {"transformer.h.0.ln_1", "transformer.h.1.mlp.c_fc"} <= paths
    assert all(op["candidate_path"] == op["path"] and op["forced"]["bitwise_equal_share"] == 1 for op in report["ops"] if op["path"])
    wrong = gpt2()
    wrong.transformer.h[1].ln_2.eps = .05
    (tmp_path / "wrong").mkdir()
    done, report = compare(reference, TOOLS[tool](wrong, tmp_path / "wrong"), tmp_path / "bad.json")
    assert done.returncode == 1 and report["first_divergence"]["path"] == "transformer.h.1.ln_2", report["first_divergence"]
    assert "eps" in report["first_divergence"]["diagnosis"]


@pytest.mark.parametrize("tool", TOOLS)
def test_inspect_lists_what_a_tool_dumped(tool, tmp_path):
    model = gpt2()
    place = TOOLS[tool](model, tmp_path)
    out = tmp_path / "report.out"
    done = program.run("inspect", "--verify", "--json", out, place)
    assert done.returncode == 0, done.stderr
    found = [(t["name"], t["sha256"]) for t in json.loads(out.read_text())["tensors"]]
    wanted = {path: hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest() for path, _, call, value in outputs_of(model)}
    assert len(found) >= 15 and all(wanted[name] == sha for name, sha in found)
    order = [name for name, _ in found]
    assert order.index("transformer.h.0.ln_1") < order.index("transformer.h.1.ln_1") < order.index("lm_head")  # of execution, not of the alphabet


def test_polygraphys_own_file(tmp_path):
    """Written by polygraphy 0.53.6 itself: values(0) and values(1) of one runner."""
    def values(iteration):
        rng = np.random.RandomState(iteration)
        return {"transformer.wte": rng.standard_normal((2, 6, 8)).astype(np.float32), "hidden": rng.standard_normal((3, 5)).astype(np.float16), "ids": rng.randint(0, 97, (2, 6)).astype(np.int64)}
    out = tmp_path / "report.out"
    done = program.run("inspect", "--verify", "--json", out, "-q", ROOT / "tests/data/polygraphy_run_results.json")
    assert done.returncode == 0, done.stderr
    found = {t["name"]: t["sha256"] for t in json.loads(out.read_text())["tensors"]}
    assert found == {name + (f" (call {i})" if i else ""): hashlib.sha256(value.tobytes()).hexdigest() for i in (0, 1) for name, value in values(i).items()}


def test_repeated_calls_keep_their_number(tmp_path):
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, input_ids):
            return self.layer(self.layer(input_ids))
    model, x = Twice().eval(), torch.randn(3, 8, generator=torch.Generator().manual_seed(2))
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5"):
        model(x)
    with torch.no_grad(), model_addition_debugger_context(model, debug_path=str(tmp_path / "dbg"), use_repr=False):
        model.forward(x)
    done, report = compare(tmp_path / "ref.h5", tmp_path / "dbg", tmp_path / "r.json")
    row = [op for op in report["ops"] if op["path"] == "layer"]
    assert [op["call"] for op in row] == [1] and row[0]["verdict"] == "pass", (done.stderr, row)
    assert any("called more than once" in warning for warning in report["warnings"])


def refused(place, words):
    done = program.run("inspect", place)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, (done.returncode, done.stdout[:300], done.stderr)


def test_damage_is_one_line(tmp_path):
    model = gpt2()
    for tool, make in TOOLS.items():
        (tmp_path / tool).mkdir()
        place = make(model, tmp_path / tool)
        listing = place if place.is_file() else next(p for p in place.iterdir() if p.name == "dump.json" or p.name.endswith("FULL_TENSORS.json"))
        whole = listing.read_text()
        for cut in (len(whole) // 3, len(whole) - 2):
            listing.write_text(whole[:cut])
            refused(place, "is no JSON")
        listing.write_text(whole)
        if place.is_dir():
            victim = next(p for p in place.rglob("*") if "lm_head" in p.name and "output" in p.name)
            victim.write_bytes(victim.read_bytes()[:-7])
            refused(place, victim.name)
            victim.unlink()
            refused(place, "which is not there")


def test_what_cannot_be_compared_says_what_to_do(tmp_path):
    refused(debugger_tree(gpt2(), tmp_path / "printed", use_repr=True), "use_repr=False")
    folder = msprobe_dump(gpt2(), tmp_path / "statistics")
    text = json.loads((folder / "dump.json").read_text())
    for entry in text["data"].values():
        for output in entry["output"]:
            output.pop("data_name")
    (folder / "dump.json").write_text(json.dumps(text))
    refused(folder, '"task": "tensor"')
    results = json.loads(run_results(gpt2(), tmp_path / "r.json").read_text())
    results["lst"] *= 2
    (tmp_path / "r.json").write_text(json.dumps(results))
    refused(tmp_path / "r.json", "2 runners (runner, runner)")
    results["lst"] = [["runner", [{"outputs": {"x": {"values": {"array": "!!!!"}}}}]]]
    (tmp_path / "r.json").write_text(json.dumps(results))
    refused(tmp_path / "r.json", "is not base64")
    for text in ("[]", "{}", '{"module_path": 3}', '{"dump_data_dir": "x", "data": 5}', '{"polygraphy_class": "RunResults"}', '{"module_path": "A", "children": [{"module_path": ["B"]}]}'):
        (tmp_path / "x.json").write_text(text)
        done = program.run("inspect", tmp_path / "x.json")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (text, done)
    (tmp_path / "deep.json").write_text('{"module_path": "A", "children": [' * 3000 + "]}" * 3000)
    refused(tmp_path / "deep.json", "deep")


def test_a_dump_names_no_file_outside_its_folder(tmp_path):
    folder = debugger_tree(gpt2(), tmp_path / "dbg")
    listing = next(folder.glob("*FULL_TENSORS.json"))
    outside = tmp_path / "outside.safetensors"
    next(folder.glob("*lm_head_outputs.safetensors")).rename(outside)
    listing.write_text(listing.read_text().replace("./GPT2LMHeadModel.lm_head_outputs.safetensors", "../outside.safetensors"))
    refused(folder, "which is not there")
