"""Runs of several processes on torch.distributed (shard_runs.py), each rank recorded by itself, judged against the whole model: healthy ones are green, and what goes wrong
between ranks is red at its module, under its name, in fp32 and in bf16."""
import json
import pathlib

import numpy as np
import pytest
import torch

import shard_runs
from parity_probe import Writer
import program

# bf16 summands are rounded before they are added, a rounding that one process has not: known by its name in a plain product, declared by place where a bias or the
# experts' weights come into it.
DECLARED = {"fp32": (), "bf16": ("--accept-path", "split K*,transformer.h.*.c_proj,model.layers.*.mlp.experts")}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, make in shard_runs.MODELS.items():
        for dtype in shard_runs.DTYPES:
            shard_runs.record(make(shard_runs.DTYPES[dtype]), folder / f"{name}.{dtype}.h5")
    for world in shard_runs.CASES:
        shard_runs.launch(world, folder)
    return folder


def compare(runs, case, dtype, *options):
    """Exit status and report."""
    model = "llama" if case.startswith("hybrid") else case.split("-")[0]
    out = runs / f"{case}.{dtype}.report"
    done = program.run("compare", runs / f"{model}.{dtype}.h5", runs / f"{case}.{dtype}", "--json", out, "--quiet", *options)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(out.read_text())


def name_of(row):
    return row["diagnosis"].split(" (")[0]


@pytest.mark.parametrize("dtype", shard_runs.DTYPES)
@pytest.mark.parametrize("case", ["llama-tp", "llama-dp", "gpt2-tp", "hybrid", "mixtral-ep"])
def test_a_healthy_run_is_green(runs, case, dtype):
    status, report = compare(runs, case, dtype, *DECLARED[dtype])
    assert (status, report["verdict"]) == (0, "pass"), [(op["path"], op["verdict"], op["diagnosis"]) for op in report["ops"] if op["verdict"] != "pass"][:4]
    assert any("ranks (" in warning and "joined" in warning for warning in report["warnings"]), report["warnings"]
    assert report["coverage"][""]["uncovered"] == 0


def test_partial_sums_that_nobody_names_are_added_up(runs):
    _, report = compare(runs, "gpt2-tp", "fp32")
    assert any("read as partial sums" in warning for warning in report["warnings"]), report["warnings"]
    rows = {op["path"]: op for op in report["ops"]}
    assert "tp partial by shape" in rows["transformer.h.0.attn.c_proj"]["pairing"]["witnesses"]
    assert "tp split(2,3) by shape" in rows["transformer.h.0.attn.c_attn"]["pairing"]["witnesses"]


def test_bf16_summands_are_a_rounding_of_their_own(runs):
    status, report = compare(runs, "llama-tp", "bf16")
    assert status == 1 and {name_of(op).split(":")[0] for op in report["ops"] if op["verdict"] == "fail"} == {"split K"}, report["first_divergence"]


FAULTS = {
    "llama-tp.all-reduce-missing": ("model.layers.1.self_attn.o_proj", "all-reduce missing"),
    "llama-tp.all-reduce-doubled": ("model.layers.0.mlp.down_proj", "all-reduce doubled"),
    "llama-tp.rank-order": ("model.layers.1.mlp.gate_proj", "rank order"),
    "llama-tp.gather-order": ("lm_head", "rank order"),
    "llama-tp.gather-axis": ("lm_head", "gathered along another axis"),
    "llama-tp.shard-dtype": ("model.layers.0.mlp.up_proj", "shard dtype"),
    "llama-tp.weight-dtype": ("model.layers.0.self_attn.k_proj", "shard dtype"),
    "llama-tp.diverged": ("model.layers.1.input_layernorm", "copies diverged"),
    "gpt2-tp.bias": ("transformer.h.0.attn.c_proj", "bias added by every rank"),
    "gpt2-tp.all-reduce-missing": ("transformer.h.1.mlp.c_proj", "all-reduce missing"),
    "hybrid.all-reduce-missing": ("model.layers.1.self_attn.o_proj", "all-reduce missing"),
    "hybrid.batch-order": ("model.embed_tokens", "rank order"),
    "mixtral-ep.all-reduce-missing": ("model.layers.1.mlp.experts", "all-reduce missing"),
}


@pytest.mark.parametrize("dtype", shard_runs.DTYPES)
@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_between_ranks_has_its_place_and_name(runs, case, dtype):
    status, report = compare(runs, case, dtype, *DECLARED[dtype])
    first = report["first_divergence"]
    path, name = FAULTS[case]
    assert status == 1 and first["path"].split("/")[0] == path and name_of(first) == name, (status, first)
    later = [(op["path"], op["verdict"], op["diagnosis"]) for op in report["ops"] if op["verdict"] in ("fail", "shape") and name_of(op) != name]
    assert not later, later[:3]


# What cannot be joined: one line, exit status 2.

def ranks(folder, count=2, mesh=None, at=lambda rank: rank, specs=None, value=lambda rank: np.ones((2, 4), np.float32)):
    folder.mkdir(exist_ok=True)
    for rank in range(count):
        with Writer(folder / f"cand.rank{rank}.h5", shard={"mesh": mesh(rank) if mesh else {"tp": 2}, "at": {"tp": at(rank)}, "specs": specs or {}}) as w:
            w.write("x", value(rank))
    return folder


def whole(file, value=np.ones((2, 4), np.float32)):
    with Writer(file) as w:
        w.write("x", value)
    return file


BAD = {
    "a rank is missing": (lambda folder: ranks(folder, 1) / "cand.rank*.h5", "the rank tp 1 is missing"),
    "two files of one rank": (lambda folder: ranks(folder, at=lambda rank: 0), "was recorded by the rank tp 0"),
    "two meshes": (lambda folder: ranks(folder, mesh=lambda rank: {"tp": 2 + rank}), "its mesh is tp 3"),
    "a spec that does not fit": (lambda folder: ranks(folder, specs={"x": {"tp": "split(5)"}}), "does not fit"),
    "one rank alone": (lambda folder: ranks(folder) / "cand.rank0.h5", "give all of them"),
    "a pattern that matches nothing": (lambda folder: folder / "cand.rank*.h5", "no file is called so"),
    "a file of no rank": (lambda folder: whole(ranks(folder) / "other.h5").parent, "does not say which rank"),
}


@pytest.mark.parametrize("make, text", BAD.values(), ids=BAD)
def test_what_cannot_be_joined_is_one_line(make, text, tmp_path):
    (tmp_path / "run").mkdir()
    done = program.run("compare", str(whole(tmp_path / "ref.h5")), str(make(tmp_path / "run")))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and text in done.stderr, (done.returncode, done.stderr)


def plain(tmp_path, candidate, *options):
    done = program.run("compare", str(whole(tmp_path / "ref.h5", np.arange(8, dtype=np.float32).reshape(2, 4) + 1)), candidate, "--json",
                           tmp_path / "report.json", "--quiet", *options)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads((tmp_path / "report.json").read_text())["ops"][0]


def test_without_a_program_and_by_a_manifest(tmp_path):
    value = np.arange(8, dtype=np.float32).reshape(2, 4) + 1
    status, _ = plain(tmp_path, ranks(tmp_path / "run", value=lambda rank: value[:, 2 * rank:2 * rank + 2]))
    assert status == 0
    status, row = plain(tmp_path, ranks(tmp_path / "run", value=lambda rank: value * (rank == 0) + value * .25 * (1, -1)[rank]))
    assert (status, name_of(row)) == (1, "all-reduce missing"), row
    for rank in range(2):
        np.savez(tmp_path / f"{rank}.npz", x=value[rank:rank + 1])
    manifest = {"mesh": [["tp", 2]], "ranks": [{"file": f"{rank}.npz", "at": [rank]} for rank in range(2)], "specs": [["*", {"tp": "split(0)"}]]}
    (tmp_path / "ranks.json").write_text(json.dumps(manifest))
    assert plain(tmp_path, tmp_path / "ranks.json")[0] == 0
    manifest["ranks"].reverse()
    for at, rank in enumerate(manifest["ranks"]):
        rank["at"] = [at]
    (tmp_path / "ranks.json").write_text(json.dumps(manifest))
    status, row = plain(tmp_path, tmp_path / "ranks.json")
    assert (status, name_of(row)) == (1, "rank order"), row


def test_a_rank_of_another_dtype(tmp_path):
    value = torch.arange(8.).reshape(2, 4) + 1
    status, row = plain(tmp_path, ranks(tmp_path / "run", value=lambda rank: value[:, 2 * rank:2 * rank + 2].to((torch.float32, torch.bfloat16)[rank])))
    assert (status, name_of(row), row["gate"]) == (1, "shard dtype", "dtype_path"), row


def test_inspect_shows_the_mesh(tmp_path):
    folder = ranks(tmp_path / "run", specs={"x": {"tp": "split(1)"}})
    done = program.run("inspect", str(pathlib.Path(folder) / "cand.rank1.h5"))
    assert done.returncode == 0 and "rank tp 1 of the mesh tp 2" in done.stdout and "x: tp split(1)" in done.stdout, done.stdout
