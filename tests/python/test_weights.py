"""parity-check weights: correct conversions pass with the whole mapping, every seeded fault is named, the saved map pairs the boundaries.

The oracle for who is whose counterpart is the conversion that the test itself did.
"""
import json
import pathlib
import re

import numpy as np
import pytest
import program

torch = pytest.importorskip("torch")
from safetensors.torch import save_file  # noqa: E402

import weight_faults as wf  # noqa: E402
from reference_models.names import diffusers_name  # noqa: E402

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "reports/parity-report-1.schema.json").read_text())


def run(*arguments):
    return program.run(*arguments)


def audit(tmp_path, reference, candidate, *more):
    """(exit status, {reference path: row}, console) of two state dicts or files."""
    files = []
    for name, state in (("reference", reference), ("candidate", candidate)):
        if isinstance(state, dict):
            state = save(state, tmp_path / f"{name}.safetensors")
        files.append(state)
    done = run("weights", *files, "--json", tmp_path / "report.json", *more)
    assert done.returncode in (0, 1, 3), done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    validate = pytest.importorskip("jsonschema").validate
    validate(report, SCHEMA)
    assert all(row["kind"] == "weight" for row in report["ops"])
    return done.returncode, {row["path"]: row for row in report["ops"]}, done.stdout


def save(state, file):
    save_file({k: v.contiguous() for k, v in state.items()}, file)
    return file


def mapping(rows):
    return {path: row["candidate_path"] for path, row in rows.items()}


def faults(rows):
    return {path: [e["fault"] for e in row["explanations"]] for path, row in rows.items() if row["verdict"] != "pass"}


@pytest.fixture(scope="module")
def wan():
    return wf.original()


# --- correct conversions ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("model_type", ["t2v", "i2v"])
def test_diffusers_names_and_dtypes(tmp_path, dtype, model_type):
    state = wf.original(2, model_type=model_type, in_dim=36 if model_type == "i2v" else 16)
    status, rows, out = audit(tmp_path, state, wf.to_diffusers(state, dtype))
    assert faults(rows) == {} and status == 0
    assert mapping(rows) == {k: diffusers_name(k) for k in state}
    assert "blocks.{i}.self_attn.q.weight = blocks.{i}.attn1.to_q.weight" in out and "PASS" in out


def test_both_ways(tmp_path, wan):
    status, rows, _ = audit(tmp_path, wf.to_diffusers(wan, torch.bfloat16), wan)
    assert (status, faults(rows)) == (1, faults(rows)) and all(f == ["values differ"] or f for f in faults(rows).values())
    rounded = {k: v.to(torch.bfloat16).float() for k, v in wan.items()}
    status, rows, _ = audit(tmp_path, wf.to_diffusers(wan, torch.bfloat16), rounded)
    assert (status, faults(rows)) == (0, {}) and mapping(rows) == {diffusers_name(k): k for k in wan}


def test_jax_layout(tmp_path, wan):
    status, rows, out = audit(tmp_path, wan, wf.to_jax(wan))
    assert (status, faults(rows)) == (0, {})
    expected = {k: next(iter(wf.to_jax({k: v}))) for k, v in wan.items()}
    assert mapping(rows) == expected
    assert "blocks.{i}.self_attn.q.weight = layers_{i}.self_attn.q.kernel perm(1,0)" in out
    assert re.search(r"patch_embedding.weight = patch_embedding.kernel perm\(4,3,0,1,2\)", out)


def test_fused_and_split(tmp_path, wan):
    fused = wf.to_fused(wan)
    status, rows, out = audit(tmp_path, wan, fused)
    assert (status, faults(rows)) == (0, {})
    assert mapping(rows) == {k: re.sub(r"self_attn\.[qkv]\.", "self_attn.qkv.", k) for k in wan}
    for part, role in enumerate("qkv"):
        assert f"blocks.{{i}}.self_attn.{role}.weight = blocks.{{i}}.self_attn.qkv.weight split(0,{part},3)" in out
    status, rows, out = audit(tmp_path, fused, wan)
    assert (status, faults(rows)) == (0, {})
    name = "blocks.1.self_attn.{}.bias"
    assert rows[name.format("qkv")]["candidate_path"] == " + ".join(name.format(role) for role in "qkv")
    assert "blocks.{i}.self_attn.qkv.weight split(0,1,3) = blocks.{i}.self_attn.k.weight" in out


def test_stacked_layers(tmp_path, wan):
    status, rows, out = audit(tmp_path, wan, wf.to_stacked(wan))
    assert (status, faults(rows)) == (0, {})
    assert mapping(rows) == {k: re.sub(r"blocks\.\d+", "blocks", k) for k in wan}
    assert "blocks.2.ffn.0.weight = blocks.ffn.0.weight split(0,2,4)" in out


def test_reshaped(tmp_path, wan):
    """Norms as (1, 1, D), the patch embedding as a matrix, heads as an axis of their own."""
    candidate = dict(wan)
    for k, v in wan.items():
        if ".norm" in k:
            candidate[k] = v.view(1, 1, -1)
        elif ".self_attn.q.weight" in k:
            candidate[k] = v.view(4, 16, 64).permute(2, 0, 1).contiguous()   # JAX: (in, heads, head)
    candidate["patch_embedding.weight"] = wan["patch_embedding.weight"].flatten(1).T.contiguous()
    status, rows, out = audit(tmp_path, wan, candidate)
    assert (status, faults(rows)) == (0, {}) and mapping(rows) == {k: k for k in wan}
    assert "blocks.{i}.self_attn.q.weight = blocks.{i}.self_attn.q.weight perm(1,2,0) reshape(64,64)" in out


def test_tied_and_constant(tmp_path):
    g = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.randn(*shape, generator=g)  # noqa: E731
    ref = {"wte.weight": draw(50, 16), "h.0.ln.weight": torch.ones(16), "h.0.ln.bias": torch.zeros(16), "h.1.ln.weight": torch.ones(16),
           "h.1.ln.bias": torch.zeros(16), "h.0.fc.weight": draw(24, 16), "h.1.fc.weight": draw(24, 16)}
    ref["lm_head.weight"] = ref["wte.weight"].clone()
    cand = {"embed.embedding": ref["wte.weight"]}
    for i in range(2):
        cand |= {f"layers_{i}.norm.scale": torch.ones(16), f"layers_{i}.norm.bias": torch.zeros(16), f"layers_{i}.dense.kernel": ref[f"h.{i}.fc.weight"].T}
    status, rows, out = audit(tmp_path, ref, cand)
    assert (status, faults(rows)) == (0, {})
    assert rows["lm_head.weight"]["candidate_path"] == "embed.embedding" and "tied" in rows["lm_head.weight"]["diagnosis"]
    assert rows["h.1.ln.bias"]["candidate_path"] == "layers_1.norm.bias" and "constant" in rows["h.1.ln.bias"]["diagnosis"]
    assert "4 parameters are constant" in out
    status, rows, out = audit(tmp_path, {k: v for k, v in ref.items() if k != "lm_head.weight"}, ref)
    assert (status, faults(rows)) == (0, {}) and "lm_head.weight is a copy of what the reference calls wte.weight (tied)" in out


@pytest.mark.parametrize("suffix", ["pt", "npz"])
def test_other_files(tmp_path, wan, suffix):
    file = tmp_path / f"candidate.{suffix}"
    twin = wf.to_diffusers(wan)
    torch.save(twin, file) if suffix == "pt" else np.savez(file, **{k: v.numpy() for k, v in twin.items()})
    status, rows, _ = audit(tmp_path, wan, file)
    assert (status, faults(rows)) == (0, {}) and mapping(rows) == {k: diffusers_name(k) for k in wan}


# --- faults -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", wf.FAULTS)
def test_each_fault_is_named(tmp_path, wan, name, dtype):
    candidate = wf.to_diffusers(wan, dtype)
    expected = wf.seed(name, candidate, wan, block=1, neighbour=3, heads=4)
    if name == "truncated" and dtype == torch.bfloat16:
        assert expected == {"blocks.1.self_attn.q.weight": "truncated"}
    status, rows, out = audit(tmp_path, wan, candidate)
    assert faults(rows) == {path: [fault] for path, fault in expected.items()}
    assert status == (3 if set(expected.values()) <= {"missing", "extra"} else 1)
    for path in expected:
        assert path in out


@pytest.mark.parametrize("name", ["transposed", "q-k-swapped", "layers-swapped", "duplicated"])
def test_faults_without_a_change_of_names(tmp_path, wan, name):
    candidate = wf.to_diffusers(wan)
    expected = {diffusers_name(k): v for k, v in wf.seed(name, candidate, wan, 1, 3, 4).items()}
    status, rows, _ = audit(tmp_path, wf.to_diffusers(wan), candidate)
    assert (status, faults(rows)) == (1, {path: [fault] for path, fault in expected.items()})


def test_swapped_in_every_layer(tmp_path, wan):
    """What content says in every block is not therefore right: the names contradict it."""
    candidate = wf.to_diffusers(wan)
    for i in range(4):
        wf.seed("q-k-swapped", candidate, wan, i, 0, 4)
    status, rows, _ = audit(tmp_path, wan, candidate)
    assert status == 1 and set(faults(rows)) == {f"blocks.{i}.self_attn.{p}.weight" for i in range(4) for p in "qk"}


def test_transposed_in_every_layer(tmp_path, wan):
    candidate = wf.to_jax(wan)
    for i in range(4):
        candidate[f"layers_{i}.self_attn.o.kernel"] = candidate[f"layers_{i}.self_attn.o.kernel"].T
    status, rows, _ = audit(tmp_path, wan, candidate)
    assert (status, faults(rows)) == (1, {f"blocks.{i}.self_attn.o.weight": ["transposed"] for i in range(4)})


def test_reshaped_instead_of_transposed(tmp_path, wan):
    candidate = wf.to_jax(wan)
    candidate["layers_1.ffn.0.kernel"] = wan["blocks.1.ffn.0.weight"].reshape(64, 160)
    status, rows, _ = audit(tmp_path, wan, candidate)
    assert (status, faults(rows)) == (1, {"blocks.1.ffn.0.weight": ["reshaped"]})


def test_faults_inside_a_fused_tensor(tmp_path, wan):
    candidate = wf.to_fused(wan)
    name = "blocks.2.self_attn.qkv.weight"
    q, k, v = candidate[name].chunk(3)
    candidate[name] = torch.cat([k, q, v])
    status, rows, _ = audit(tmp_path, wan, candidate)
    assert (status, faults(rows)) == (1, {f"blocks.2.self_attn.{p}.weight": ["swapped"] for p in "qk"})
    candidate[name] = torch.cat([q, k * 2, v])
    status, rows, _ = audit(tmp_path, wan, candidate)
    assert (status, faults(rows)) == (1, {"blocks.2.self_attn.k.weight": ["scaled"]})


def test_all_faults_at_once(tmp_path):
    reference = wf.original(layers=30)
    candidate, expected = wf.to_diffusers(reference, torch.bfloat16), {}
    for i, name in enumerate(wf.FAULTS):
        expected.update(wf.seed(name, candidate, reference, i, 29 if name == "layers-swapped" else 28, 4))
    status, rows, _ = audit(tmp_path, reference, candidate)
    assert (status, faults(rows)) == (1, {path: [fault] for path, fault in expected.items()})


def test_trained_on(tmp_path, wan):
    """Other values everywhere and other names: still paired with the right ones, and every one of them differs."""
    g = torch.Generator().manual_seed(5)
    tuned = {k: v + 0.02 * v.std() * torch.randn(v.shape, generator=g) for k, v in wf.to_diffusers(wan).items()}
    status, rows, _ = audit(tmp_path, wan, tuned)
    assert status == 1 and mapping(rows) == {k: diffusers_name(k) for k in wan}
    assert set(map(tuple, faults(rows).values())) == {("values differ",)} and len(faults(rows)) == len(wan)


def test_layers_under_an_unknown_word(tmp_path, wan):
    """Constant norms pair by their block's number even where nobody knows the word for a block."""
    state = {k: torch.ones_like(v) if "norm" in k and k.endswith("weight") else v for k, v in wan.items()}
    status, rows, _ = audit(tmp_path, state, {k.replace("blocks.", "blk."): v for k, v in state.items()})
    assert (status, faults(rows)) == (0, {}) and mapping(rows) == {k: k.replace("blocks.", "blk.") for k in state}


def test_interleaved_heads(tmp_path, wan):
    candidate = wf.to_fused(wan)
    name = "blocks.{}.self_attn.qkv.weight"
    for i in range(4):
        x = candidate[name.format(i)]
        candidate[name.format(i)] = x.view(3, 4, 16, 64).transpose(0, 1).reshape(x.shape)
    status, rows, out = audit(tmp_path, wan, candidate)
    assert status == 3 and faults(rows) == {f"blocks.{i}.self_attn.{p}.weight": ["interleaved"] for i in range(4) for p in "qkv"}


def test_names_that_no_map_can_hold(tmp_path):
    state = {"a #{i}* b": torch.randn(9, 9), "c.weight": torch.randn(5, 7), "empty": torch.zeros(0, 4)}
    status, rows, out = audit(tmp_path, state, state, "--save-map", tmp_path / "found.map")
    assert (status, faults(rows)) == (3, {"empty": ["empty"]}) and "a name that no map file can hold" in out
    assert [line for line in (tmp_path / "found.map").read_text().splitlines() if line and line[0] != "#"] == ["c = c", "c.weight = c.weight", "empty = empty"]


# --- unusable input ---------------------------------------------------------------------------------------------------
def test_unusable_input(tmp_path, wan):
    good = save(wan, tmp_path / "good.safetensors")
    data = good.read_bytes()
    (tmp_path / "short.safetensors").write_bytes(data[:len(data) // 2])
    (tmp_path / "text.safetensors").write_text("no safetensors")
    (tmp_path / "text.h5").write_text("no HDF5")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for bad in ("short.safetensors", "text.safetensors", "text.h5", "empty.npz", "folder"):
        for arguments in ((good, tmp_path / bad), (tmp_path / bad, good)):
            done = run("weights", *arguments)
            assert done.returncode == 2 and done.stderr.count("\n") == 1 and bad in done.stderr and not done.stdout, done
    assert run("weights", good).returncode == 2 and run("weights", good, tmp_path / "none.pt").returncode == 2
    done = run("weights", good, good, "--save-map", good / "x.map")
    assert done.returncode == 2 and "x.map" in done.stderr


def test_a_count_is_no_constant_of_a_graph(tmp_path):
    """An exported graph keeps numbers of its own beside the weights; a batch norm's count of batches is in none of them."""
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm1d(24)
    norm(torch.randn(50, 24))
    for parameter in norm.parameters():
        parameter.data = torch.randn(24)
    state = {f"head.norm.{name}": value for name, value in norm.state_dict().items()}
    state.update({"head.out.weight": torch.randn(7, 24), "head.out.bias": torch.randn(7)})
    graph = {f"const_{i}": value.clone() for i, (name, value) in enumerate(state.items()) if not name.endswith("tracked")}
    status, rows, out = audit(tmp_path, state, {**graph, "const_100": torch.tensor(0.125)})
    assert "head.norm.num_batches_tracked" not in mapping(rows) and "another class" not in out
    assert "computed, not trained, and without counterpart: head.norm.num_batches_tracked" in out and faults(rows) == {} and status == 0
    assert "single numbers of a graph whose names are its own, no parameters: const_100" in out
    status, rows, _ = audit(tmp_path, state, {**graph, "const_100": torch.tensor([0.125, 2])})  # a tensor has to be somebody's
    assert faults(rows) == {"const_100": ["extra"]} and status == 3
    status, rows, _ = audit(tmp_path, state, {**state, "scale": torch.tensor(0.125)})  # among names of the reference's: a parameter
    assert faults(rows) == {"scale": ["extra"]} and status == 3
    status, rows, _ = audit(tmp_path, state, {**state, "head.norm.num_batches_tracked": torch.tensor(0.125)})  # of this very name
    assert status == 1 and "head.norm.num_batches_tracked" in faults(rows)
