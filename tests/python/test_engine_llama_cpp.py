"""llama.cpp from its wheel, recorded through its C API: the same numbers as transformers computes, under ggml's names, tensor by tensor."""
import ctypes.util
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest
import program

pytest.importorskip("xllamacpp")

import engine_models as models  # noqa: E402
import gguf_models  # noqa: E402
import parity_probe  # noqa: E402
from parity_probe.engines import llama_cpp  # noqa: E402
from parity_probe.engines.llama_cpp import library, structs  # noqa: E402

AGREE = 5e-6     # of the largest logit; measured 7e-7
HALF_TABLE = 1e-3  # GPT-2: ggml takes GELU from a table of fp16 values; measured 3e-4
MAPS = pathlib.Path(__file__).resolve().parents[2] / "probes/maps/engines"


def events(path):
    with h5py.File(path) as f:
        return [json.loads(line) for line in bytes(f["trace/events"][()]).decode().splitlines()]


def tensors(path):
    """{(name, call): array} of a candidate's tensors."""
    with h5py.File(path) as f:
        return {(e["path"], e["call"]): f["values"][e["k"]][()] for e in events(path) if e["e"] == "point"}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """name -> (model, GGUF file, reference recording, reference's logits, candidate recording, candidate's logits); each made once."""
    made, folder = {}, tmp_path_factory.mktemp("llama_cpp")

    def get(name):
        if name not in made:
            model = models.model(name)
            expected = models.reference(model, folder / f"{name}.ref.h5")
            gguf = gguf_models.write(folder / f"{name}.gguf", *gguf_models.converted(model))
            logits = llama_cpp.record(gguf, models.TOKENS, folder / f"{name}.h5", threads=1)
            made[name] = model, gguf, folder / f"{name}.ref.h5", expected, folder / f"{name}.h5", logits
        return made[name]

    return get


@pytest.mark.parametrize("name", list(models.MODELS))
def test_the_converted_model_is_the_model(case, name):
    _, _, _, expected, path, logits = case(name)
    assert logits.shape == expected.shape
    assert np.abs(logits - expected).max() <= (HALF_TABLE if name == "gpt2" else AGREE) * np.abs(expected).max()
    recorded = tensors(path)
    assert np.array_equal(recorded["result_output", 0], logits)
    assert recorded["inp_tokens", 0].tolist() == models.TOKENS
    with h5py.File(path) as f:
        assert f.attrs["complete"] == 1
        assert json.loads(f.attrs["provenance"])["engine"]["cache"] == "f32"


def test_tensors_are_those_of_the_reference(case):
    """Names, order of axes, calls and dtypes, against transformers' own values."""
    model, _, _, _, path, _ = case("llama")
    import torch
    seen = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _, __, out, name=name: seen.__setitem__(name, (out[0] if isinstance(out, tuple) else out)[0].detach().numpy()))
    with torch.no_grad():
        attention = model(torch.tensor([models.TOKENS]), output_attentions=True, use_cache=False).attentions
    recorded = tensors(path)
    assert {str(v.dtype) for v in recorded.values()} == {"float32", "int32"}

    def close(a, b):
        return a.shape == b.shape and np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(b)

    for layer in range(3):
        assert close(recorded[f"l_out-{layer}", 0], seen[f"model.layers.{layer}"])
        assert close(recorded[f"ffn_gate-{layer}", 0], seen[f"model.layers.{layer}.mlp.gate_proj"])
        queries = seen[f"model.layers.{layer}.self_attn.q_proj"]
        assert close(recorded[f"Qcur-{layer}", 0], gguf_models.permuted(queries.T, 4).T)    # ggml's heads hold pairs, transformers' halves
        assert recorded[f"Qcur-{layer}", 1].shape == (24, 4, 16)                              # call 1: after RoPE, token, head, channel
        probabilities = recorded[f"kq_soft_max-{layer}", 0]
        assert probabilities.shape == (4, 24, 256)                                          # llama.cpp pads the cache to a multiple of 256 cells
        assert close(probabilities[:, :, :24], attention[layer][0].numpy()) and not probabilities[:, :, 24:].any()


def test_chunks_use_the_same_cache(case, tmp_path):
    _, gguf, _, _, _, logits = case("qwen2")
    tokens = models.TOKENS
    chunked = llama_cpp.record(gguf, [tokens[:10], tokens[10:22], tokens[22:23], tokens[23:]], tmp_path / "c.h5", threads=1)
    assert np.abs(chunked - logits).max() <= AGREE * np.abs(logits).max()
    recorded = tensors(tmp_path / "c.h5")
    assert [recorded["l_out-1", call].shape for call in range(4)] == [(10, 64), (12, 64), (64,), (64,)]  # ggml drops leading axes of one element
    last = llama_cpp.record(gguf, [tokens[:10], tokens[10:]], tmp_path / "l.h5", outputs="last", threads=1)
    assert last.shape == (2, 96) and np.abs(last - logits[[9, 23]]).max() <= AGREE * np.abs(logits).max()


def test_a_half_cache_and_flash_attention_are_what_is_asked(case, tmp_path):
    _, gguf, _, _, _, logits = case("qwen2")
    half = llama_cpp.record(gguf, models.TOKENS, tmp_path / "h.h5", cache="f16", threads=1)
    assert 1e-5 < np.abs(half - logits).max() < 1e-2
    assert tensors(tmp_path / "h.h5")["cache_k_l0 (view)", 0].dtype == np.float16
    flash = llama_cpp.record(gguf, models.TOKENS, tmp_path / "f.h5", cache="f16", flash_attention=None, threads=1)
    assert np.abs(flash - logits).max() < 1e-2
    names = {name for name, _ in tensors(tmp_path / "f.h5")}
    assert "kq_soft_max-0" not in names and "ffn_inp-0" in names  # attention is one op
    with pytest.raises(parity_probe.Error, match="libllama makes no context .* block size 32"):  # libllama's own reason
        llama_cpp.record(gguf, models.TOKENS, tmp_path / "q.h5", cache="q8_0", flash_attention=True)
    llama_cpp.record(case("qwen3")[1], models.TOKENS, tmp_path / "q.h5", cache="q8_0", flash_attention=True, views=True, threads=1)
    skipped = {e["skipped"]: e["type"] for e in events(tmp_path / "q.h5") if e["e"] == "note" and "skipped" in e}
    assert "q8_0" in skipped.values()  # blocks are no array of numbers: a note says what was left out
    assert any("(permuted)" in name for name, _ in tensors(tmp_path / "q.h5"))


@pytest.mark.parametrize("name, least", [("llama", .95), ("llama3", .95), ("qwen2", .84), ("qwen3", .95), ("olmo3", .97)])
def test_a_healthy_engine_passes(case, tmp_path, name, least):
    """Green, and paired by content: `least` of all that ggml computes, what it only looks at from elsewhere (views) aside. Two or three nodes of a graph
    belong to no layer; Qwen2's products before their bias (nine of 77) have no counterpart, because PyTorch adds the bias inside."""
    _, _, reference, _, path, _ = case(name)
    run = program.run("compare", reference, path, "--json", tmp_path / "r.json")
    assert run.returncode == 0, run.stdout + run.stderr
    paired = {(op["candidate_path"]) for op in json.loads((tmp_path / "r.json").read_text())["ops"]}
    assert {"Qcur-1", "Kcur-1", "kq-1", "kq_soft_max-1"} <= paired  # rows of heads interleaved, keys padded to 256
    computed = [e for e in events(path) if e["e"] == "point" and e.get("role", "output") == "output" and "(view)" not in e["path"]]
    assert len(json.loads((tmp_path / "r.json").read_text())["ops"]) >= least * len(computed)


@pytest.mark.parametrize("name, paired", [("llama", 64), ("llama3", 64), ("qwen2", 64), ("qwen3", 76), ("olmo3", 100)])
def test_an_engine_that_generates_passes(case, tmp_path, name, paired):
    """As engines run by default: logits of the last token alone, and nothing of the others behind the last attention."""
    _, gguf, reference, *_ = case(name)
    llama_cpp.record(gguf, models.TOKENS, tmp_path / "last.h5", outputs="last", threads=1)
    run = program.run("compare", reference, tmp_path / "last.h5", "--json", tmp_path / "r.json")
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert len(report["ops"]) >= paired and any("the last of 24 tokens alone" in warning for warning in report["warnings"])
    assert next(op["shape"] for op in report["ops"] if op["path"] == "lm_head") == [1, 1, 96]


def test_gelu_from_a_table_is_named_and_can_be_accepted(case, tmp_path):
    """ggml has GELU of every fp16 number in a table: named bit by bit where the reference writes GELU out, and green when declared."""
    _, _, reference, _, path, _ = case("gpt2")
    run = program.run("compare", reference, path, "--json", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    failing = [op for op in report["ops"] if op["verdict"] != "pass"]
    assert run.returncode == 1 and [op["path"] for op in failing] == [f"transformer.h.{i}.mlp.act" for i in range(3)]
    assert all(op["diagnosis"].startswith("fast math: fp16 table") for op in failing), [op["diagnosis"] for op in failing]
    declared = program.run("compare", reference, path, "--accept-path", "fast math: fp16 table", cwd=tmp_path)
    assert declared.returncode == 0, declared.stdout


@pytest.mark.parametrize("name, rules", [("llama", "llama"), ("qwen2", "llama"), ("qwen3", "llama"), ("gpt2", "gpt2")])
def test_names_are_known_beforehand(case, tmp_path, name, rules):
    """The maps pair by name what content would have to find; GPT-2's activations differ, because ggml takes GELU from a table of fp16 values."""
    _, gguf, reference, _, _, logits = case(name)
    again = llama_cpp.record(gguf, models.TOKENS, tmp_path / "b.h5", batch=True, threads=1)
    assert np.array_equal(again, logits) and tensors(tmp_path / "b.h5")["kq-0", 0].shape == (1, 4, 24, 256)
    program.run("compare", reference, tmp_path / "b.h5", "--map", MAPS / f"llama_cpp_{rules}.map", "--out", tmp_path / "out")
    report = json.loads((tmp_path / "out/report.json").read_text())
    failing = {op["path"] for op in report["ops"] if op["verdict"] != "pass"}
    assert failing == ({f"transformer.h.{i}.mlp.act" for i in range(3)} if name == "gpt2" else set())
    named = {op["path"]: op["candidate_path"] for op in report["ops"]}
    block = "transformer.h.1" if name == "gpt2" else "model.layers.1"
    assert named[block] == "l_out-1" and named[f"{block}/add.0"] == "ffn_inp-1" and named["lm_head"] == "result_output"


def test_the_examples_to_copy(case, tmp_path, monkeypatch):
    """probes/engines/README.md: those that need an engine; the others are run with the other READMEs'."""
    page = (MAPS.parents[1] / "engines/README.md").read_text()
    examples = re.findall(r"^```python engine\n(.*?)^```$", page, re.S | re.M)
    ours = [e for e in examples if "llama_cpp" in e]
    assert len(examples) == 2 and len(ours) == 1
    shutil.copy(case("llama")[1], tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    exec(compile(ours[0], "README.md", "exec"), {})
    assert (4, 64) == tensors("cand.h5")["l_out-2", 0].shape[1:]


def test_bad_input_is_one_clear_line(case, tmp_path):
    gguf = str(case("llama")[1])
    (tmp_path / "no.gguf").write_bytes(b"GGUF but not really")
    for arguments, text in (([str(tmp_path / "none.gguf"), "--tokens", "1"], "no such file"),
                            ([str(tmp_path / "no.gguf"), "--tokens", "1"], "libllama cannot load it"),
                            ([gguf, "--tokens", "1,96"], "token 96 is not in its vocabulary of 96"),
                            ([gguf, "--tokens", "1,x"], "whole numbers"),
                            ([gguf, "--tokens", ""], "no tokens"),
                            ([gguf, "--tokens", "1", "--library", "/no/libllama.so"], "cannot be loaded"),
                            ([gguf, "--tokens", "1", "--library", ctypes.util.find_library("m")], "has no llama_backend_init")):
        run = subprocess.run([sys.executable, "-m", "parity_probe.engines.llama_cpp", *arguments, "-o", str(tmp_path / "x.h5")], capture_output=True, text=True)
        assert run.returncode == 2 and text in run.stderr and run.stderr.count("\n") == 1, (arguments, run.stderr)
    with pytest.raises(parity_probe.Error, match="there is no folder"):
        llama_cpp.record(gguf, [1], tmp_path / "nowhere/x.h5")


def test_an_unknown_layout_is_refused():
    """A field that libllama moved must not be written to the old place."""
    right = bytes(library.load().api.llama_context_default_params())
    fields = structs.ContextFields(right, "libllama")
    structs.ContextFields(right[:16] + struct.pack("<2I", 0, 0) + right[16:-8], "libllama")  # a release with two more numbers in front: found
    for place, value in ((fields.flash_attention, 0), (fields.callback, 1), (fields.type_k, 0), (fields.rope_base, 7), (4, 0)):
        wrong = bytearray(right)
        struct.pack_into("<i", wrong, place, value)
        with pytest.raises(parity_probe.Error, match="is not one that this recorder knows"):
            structs.ContextFields(bytes(wrong), "libllama")
    moved = right[:fields.callback] + bytes(8) + right[fields.callback:-8]  # a pointer more before the callback
    with pytest.raises(parity_probe.Error, match="is not one that this recorder knows"):
        structs.ContextFields(moved, "libllama")


def test_a_recording_that_cannot_go_on_is_raised(case, tmp_path, monkeypatch):
    """What fails inside the callback reaches the caller, and the engine is stopped."""
    written = []

    def fail(self, path, *_, **__):
        written.append(path)
        if path == "attn_norm-0":
            raise parity_probe.Error("disk full")

    monkeypatch.setattr(parity_probe.Writer, "write", fail)
    with pytest.raises(parity_probe.Error, match="disk full"):
        llama_cpp.record(case("llama")[1], models.TOKENS, tmp_path / "x.h5")
    assert written[-1] == "attn_norm-0"
