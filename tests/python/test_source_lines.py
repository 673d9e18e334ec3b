"""Lines of source: each op's is read again in the sources of transformers and diffusers, and must hold the call that made it."""
import ast
import importlib.util
import json
import linecache
import os
import pathlib
import subprocess
import sys

import pytest
import torch

from test_recorder_replay import one_thread, parity_probe, replay, tiny_wan  # noqa: F401
from test_recorder_writer import written

from parity_probe import lines
import program

HERE = pathlib.Path(__file__)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HERE.resolve().parents[2] / "probes" / "python")}
# What must stand on the line that an op came from; ops that Python's syntax makes in many ways (add, view of a Linear) are checked by function alone.
CALLS = {"rsqrt": ("rsqrt", "norm"), "pow.Tensor_Scalar": (".pow(", "**"), "mean.dim": (".mean(",), "cat": ("cat(",), "cos": ("cos(",), "sin": ("sin(",),
         "neg": ("-",), "silu": ("silu", "act", "functional"), "transpose.int": ("transpose(",), "unsqueeze": ("unsqueeze(", "None"),
         "_scaled_dot_product_flash_attention_for_cpu": ("scaled_dot_product_attention", "dispatch_attention_fn"), "embedding": ("embed",), "mul.Tensor": ("*", "mul(", "outer(")}


def llama(**changes):
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=50)
    return LlamaForCausalLM(LlamaConfig(**{**sizes, **changes})).eval(), {"input_ids": torch.arange(10).view(2, 5)}


def sources(path):
    """[(event, text of its line, text of the library's line)] of the ops, "" where there is none; the event's "module" is the path of its module call."""
    events = replay(path).events
    modules = {e["id"]: e["path"] for e in events if e["e"] == "call"}
    for e in events:
        if e["e"] == "op":
            e["module"] = modules.get(e["in"], "")
    texts = {e["source_line"]: e["text"] for e in events if "source_line" in e}
    return [(e, texts.get(e.get("src"), ""), texts.get(e.get("lib"), "")) for e in events if e["e"] == "op"]


def parts(text):
    """(path of the file on this machine, line, function) of a line's text."""
    place, _, function = text.partition(" in ")
    name, _, line = place.rpartition(":")
    assert not name.startswith("/") and ".." not in name, text
    package = importlib.util.find_spec(name.split("/")[0]) if "/" in name else None
    folder = pathlib.Path(package.submodule_search_locations[0]).parent if package else HERE.parent
    return folder / name, int(line), function


def function_at(path, line):
    """Name of the innermost function around a line, by Python's own parser."""
    inside = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, (ast.FunctionDef, ast.Lambda)) and n.lineno <= line <= n.end_lineno]
    return getattr(max(inside, key=lambda n: n.lineno), "name", "<lambda>")


def check(found, package):
    """Every op has a line of `package`, inside the function it says, that holds what the op is called by; the number of ops whose call was looked for."""
    looked = 0
    for event, text, library in found:
        path, line, function = parts(text)
        code = linecache.getline(str(path), line)
        inner = function.startswith("<")  # a comprehension
        assert text.startswith(f"{package}/") and code.strip() and (inner or function_at(path, line) == function), (event["op"], text)
        assert library == "" or library.startswith("torch/") and function_at(*parts(library)[:2]) == parts(library)[2], library
        wanted = CALLS.get(event["op"].removeprefix("aten::")) if not library else None
        if library.startswith("torch/nn/modules/linear.py"):  # the user's line calls that module: self.q_proj(x), self.to_out[0](x), or one of a list
            name = event["module"].rpartition(".")[2]
            wanted = (f"[{name}](", "module(", "layer(") if name.isdigit() else (f".{name}(",)
        if wanted:
            looked += 1
            statement = "".join(linecache.getline(str(path), n) for n in range(line, line + 2))
            assert any(word in statement for word in wanted), (event["op"], text, code)
    return looked


@pytest.mark.parametrize("level", ["op", "module"])
@pytest.mark.parametrize("inference", [False, True])
def test_a_transformers_model(tmp_path, level, inference):
    model, inputs = llama()
    with torch.inference_mode(inference), parity_probe.record(model, tmp_path / "a.h5", level=level):
        model(**inputs)
    found = sources(tmp_path / "a.h5")
    assert check(found, "transformers") > 40
    assert {library.split(":")[0] for e, _, library in found if e["op"] == "aten::mm"} == {"torch/nn/modules/linear.py"}
    residual = [text for e, text, _ in found if e["op"] == "aten::add.Tensor" and "modeling_llama" in text and "residual +" in linecache.getline(str(parts(text)[0]), parts(text)[1])]
    assert len(residual) == 4 and len(set(residual)) == 2  # two lines of LlamaDecoderLayer.forward, in each of two layers


def test_a_diffusers_model(tmp_path):
    model, inputs = tiny_wan()
    with torch.no_grad(), parity_probe.record(model, tmp_path / "a.h5"):
        model(**inputs)
    found = sources(tmp_path / "a.h5")
    assert check(found, "diffusers") > 20
    assert {"diffusers/models/normalization.py", "diffusers/models/attention.py"} & {text.split(":")[0] for _, text, _ in found}


def scaled(x):
    return torch.sin(x) * 3  # both on this line


class Compiled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.compile(scaled)

    def forward(self, x):
        return torch.nn.functional.softplus(self.scale(x))


def test_compiled_functions_and_the_librarys_own_lines(tmp_path):
    model, x = Compiled(), torch.ones(3)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "a.h5"):
        model(x)
        torch.compile(model)(x)
    found = sources(tmp_path / "a.h5")
    by_op = {e["op"]: text for e, text, _ in found}
    line = next(n for n in range(1, 999) if "both on this line" in linecache.getline(str(HERE), n))
    assert by_op["aten::sin"] == by_op["aten::mul.Tensor"] == f"{HERE.name}:{line} in scaled"
    assert by_op["aten::softplus"].endswith(" in forward") and len(found) == 6


def test_none_when_not_wanted(tmp_path):
    model, inputs = llama(num_hidden_layers=1)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "a.h5", lines=False):
        model(**inputs)
    events = replay(tmp_path / "a.h5").events
    assert not any("src" in e or "lib" in e or "source_line" in e for e in events)


def test_sketches_have_the_line_of_the_forward_or_of_the_call(tmp_path):
    model, inputs = llama(num_hidden_layers=1)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "a.h5", level="sketch"):
        model(**inputs)
    by_path = {e["path"]: e["src"] for e in written(tmp_path / "a.h5")[1] if e["role"] == "output"}
    path, line, _ = parts(by_path["model.layers.0.self_attn.q_proj"])
    assert "self.q_proj(" in linecache.getline(str(path), line)
    path, line, function = parts(by_path["model.layers.0.mlp"])
    assert function == "forward" and linecache.getline(str(path), line).strip().startswith("def forward")
    full, converted = tmp_path / "b.h5", tmp_path / "c.h5"
    with torch.no_grad(), parity_probe.record(model, full):
        model(**inputs)
    subprocess.run([sys.executable, "-m", "parity_probe", "sketch", str(full), "-o", str(converted)], check=True, env=ENVIRONMENT)
    by_path = {e["path"]: e.get("src", "") for e in written(converted)[1] if e["role"] == "output"}
    path, line, _ = parts(by_path["model.layers.0"])
    assert "residual + hidden_states" in linecache.getline(str(path), line)


def test_no_folder_of_a_person(tmp_path):
    assert lines.file_name("/home/alice/secret/run.py") == "run.py"
    assert lines.file_name("<eval_with_key>.3 from /home/alice/x.py:1 in y") == "<eval_with_key>.3"
    assert lines.file_name(torch.nn.modules.linear.__file__) == "torch/nn/modules/linear.py"
    assert len(lines.text("x" * 1000 + ".py", 1, "f" * 1000)) < 2 * lines.LONGEST + 20
    (tmp_path / "port.py").write_text("import sys, torch, parity_probe\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
                                      "x = torch.ones(2)\nwith parity_probe.record(M(), sys.argv[1]) as r:\n    r.model(x)\n")
    subprocess.run([sys.executable, str(tmp_path / "port.py"), str(tmp_path / "a.h5")], check=True, cwd="/", env=ENVIRONMENT)
    assert [text for _, text, _ in sources(tmp_path / "a.h5")] == ["port.py:4 in forward"]
    assert str(tmp_path).encode() not in b"".join(json.dumps(e).encode() for e in replay(tmp_path / "a.h5").events)


# --- what is not a torch.nn.Module ---------------------------------------------------------------------------------------
def write_one(writer):
    writer.write("a", torch.ones(2))  # the line of this call


def test_the_writer_takes_its_callers_line(tmp_path):
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        write_one(w)
        w.write("b", torch.ones(2), source="kernels/attention.cu:88 in forward")
        w.write("c", torch.ones(2), source="")
    line = next(n for n in range(1, 999) if "the line of this call" in linecache.getline(str(HERE), n))
    assert [e.get("src") for e in written(tmp_path / "a.h5")[1]] == [f"{HERE.name}:{line} in write_one", "kernels/attention.cu:88 in forward", None]


def helper(writer, name, array, **options):
    writer.write(name, array, **options)  # inside the helper
    return array


def through_a_helper(writer):
    return [helper(writer, name, torch.ones(2), **options)  # where it is computed
            for name, options in (("a", {}), ("b", {"stacklevel": 2}), ("c", {"stacklevel": 999}))]


def test_the_line_behind_a_helper(tmp_path):
    with parity_probe.Writer(tmp_path / "a.h5") as w:
        through_a_helper(w)
        with pytest.raises(ValueError, match="stacklevel"):
            w.write("d", torch.ones(2), stacklevel=0)
    marks = ("inside the helper", "where it is computed")
    inside, outside = (next(n for n in range(1, 999) if "# " + mark in linecache.getline(str(HERE), n)) for mark in marks)
    first, second, last = [e["src"] for e in written(tmp_path / "a.h5")[1]]
    assert first == f"{HERE.name}:{inside} in helper" and second.startswith(f"{HERE.name}:{outside} in ")
    assert last.startswith(("pytest/", "_pytest/", "__main__")) or " in <module>" in last  # fewer than that: the outermost


CPP = """#include "parity_probe.hpp"
using namespace parity::probe;
void attention(Writer& w, const float* x) {
  w.write("a", x, {2});
  w.write("b", static_cast<const void*>(x), {2},
          f32);
  w.write("c", x, {2}, Role::output, {}, {}, Line{"/home/alice/gpu/kernel.cu", 7, ""});
  w.write("d", x, {2}, Role::output, {}, {}, Line{});
}
void helper(Writer& w, const char* name, const std::vector<float>& x, Line line = Line::here()) {
  w.write(name, x.data(), {2}, Role::output, {}, {}, line);
}
void behind_a_helper(Writer& w) {
  helper(w, "e", {1, 2});
}
int main(int, char** argv) {
  const float x[] = {1, 2};
  Writer w(argv[1]);
  attention(w, x);
  behind_a_helper(w);
  w.close();
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++-14"])
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_cpp_writer_takes_its_callers_line(tmp_path, compiler, standard):
    import shutil
    from test_cpp_probe import build
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "port.cpp").write_text(CPP)
    build(tmp_path / "port.cpp", tmp_path / "port", f"-std={standard}", compiler=compiler)
    subprocess.run([str(tmp_path / "port"), str(tmp_path / "a.h5")], check=True)
    first, second, *rest = [e.get("src") for e in written(tmp_path / "a.h5")[1]]
    assert first == "port.cpp:4 in attention" and second in ("port.cpp:5 in attention", "port.cpp:6 in attention") and rest == ["kernel.cu:7", None, "port.cpp:14 in behind_a_helper"]


# --- what parity-check makes of them -------------------------------------------------------------------------------------
def faulty_norm(self, hidden_states):
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    return self.weight * (hidden_states * torch.rsqrt(variance + 1e-3))  # epsilon of another model


def test_a_finding_names_both_sides_lines(tmp_path, monkeypatch):
    model, inputs = llama()
    with torch.no_grad(), parity_probe.record(model, tmp_path / "ref.h5"):
        model(**inputs)
    norm = model.model.layers[1].post_attention_layernorm
    monkeypatch.setattr(norm, "forward", faulty_norm.__get__(norm))
    with torch.no_grad(), parity_probe.record(model, tmp_path / "cand.h5", level="module"):
        model(**inputs)
    done = program.run("compare", tmp_path / "ref.h5", tmp_path / "cand.h5", "--json", tmp_path / "r.json", "--out", tmp_path / "out",
                           "--quiet")
    assert done.returncode == 1, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    first = report["first_divergence"]
    assert first["path"] == "model.layers.1.post_attention_layernorm"
    theirs = next(n for n in range(1, 999) if "epsilon of another model" in linecache.getline(str(HERE), n) and "faulty" not in linecache.getline(str(HERE), n))
    assert first["candidate_source"] == f"{HERE.name}:{theirs} in faulty_norm"
    name, line = first["source"].removesuffix(" in forward").split(":")
    from transformers.models.llama import modeling_llama
    assert name == "modeling_llama.py" and "self.weight * hidden_states" in linecache.getline(modeling_llama.__file__, int(line))
    rows = {row["path"]: row for row in report["ops"]}
    assert all(row["source"] and row["candidate_source"] for row in rows.values())
    inspected = program.run("inspect", tmp_path / "ref.h5", "--ops", "--layer", "*post_attention_layernorm")
    assert inspected.stdout.count(first["source"]) == 2
