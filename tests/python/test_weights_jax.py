"""parity-check weights on recordings: PyTorch's GPT-2 and transformers' FlaxGPT2LMHeadModel, without a map; the map it saves pairs their modules."""
import json

import numpy as np
import pytest
import program

from test_jax_gpt2 import IDS, flax_model, parity_probe, reference, with_parameter  # noqa: F401  (reference: a fixture)


def record(model, file):
    with parity_probe.jax.record(model, file, functions=["jax.nn:gelu"]):
        model(IDS)
    return file


def audit(folder, candidate, tmp_path):
    command = ["weights", folder / "ref.h5", candidate, "--json", tmp_path / "w.json", "--save-map", tmp_path / "found.map"]
    done = program.run(*command)
    rows = json.loads((tmp_path / "w.json").read_text())["ops"]
    return done, rows, {r["path"]: [e["fault"] for e in r["explanations"]] for r in rows if r["verdict"] != "pass"}


def test_flax_gpt2_maps_completely(reference, tmp_path):  # noqa: F811
    folder, outputs, weights = reference
    candidate = record(flax_model(folder), tmp_path / "cand.h5")
    done, rows, faults = audit(folder, candidate, tmp_path)
    assert (done.returncode, faults) == (0, {})
    leaves = {"weight": {"ln": "scale", "c_": "kernel", "wt": "embedding", "wp": "embedding"}}
    for row in rows:
        stem, kind = row["path"].rsplit(".", 1)
        kind = leaves.get(kind, {}).get(stem.rsplit(".", 1)[-1][:2], kind)
        assert row["candidate_path"] == ("transformer.wte.embedding" if stem == "lm_head" else f"{stem}.{kind}")
        if kind == "kernel":
            assert "perm(1,0)" in row["diagnosis"]
    left_out = next(line for line in done.stdout.splitlines() if line.startswith("note: computed"))
    assert {r["path"] for r in rows} | set(left_out.split(": ", 2)[2].split(", ")) == set(weights)  # nothing is silent
    assert "transformer.h.{i}.attn.c_attn.weight = transformer.h.{i}.attn.c_attn.kernel perm(1,0)" in done.stdout
    command = ["compare", folder / "ref.h5", candidate, "--map", tmp_path / "found.map", "--json", tmp_path / "c.json", "--quiet"]
    assert program.run(*command).returncode == 0
    compared = {r["path"]: r for r in json.loads((tmp_path / "c.json").read_text())["ops"]}
    assert all(compared[path]["verdict"] == "pass" for path, _ in outputs if path.endswith(("c_attn", "c_proj", "c_fc", "ln_1", "ln_2", "ln_f")))


def heads(x):
    return x.reshape(x.shape[0], -1, 4, 8)[:, :, np.array([1, 0, 2, 3])].reshape(x.shape) if x.ndim == 2 else x


H1 = ("transformer", "h", "1")
FAULTS = {  # path in the port, what is done to it, fault, parameter of the reference
    "transposed": ((*H1, "attn", "c_proj", "kernel"), np.transpose, "transposed", "transformer.h.1.attn.c_proj.weight"),
    "heads permuted": ((*H1, "attn", "c_proj", "kernel"), lambda x: heads(np.asarray(x)), "rows permuted", "transformer.h.1.attn.c_proj.weight"),
    "scaled": ((*H1, "mlp", "c_fc", "kernel"), lambda x: x * 8, "scaled", "transformer.h.1.mlp.c_fc.weight"),
    "bias lost": ((*H1, "mlp", "c_fc", "bias"), np.zeros_like, "zero", "transformer.h.1.mlp.c_fc.bias"),
    "rounded": (("transformer", "wpe", "embedding"), lambda x: np.asarray(x).astype(np.float16).astype(np.float32), "rounded", "transformer.wpe.weight"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_flax_gpt2(reference, tmp_path, name):  # noqa: F811
    folder, _, _ = reference
    place, change, fault, parameter = FAULTS[name]
    model = flax_model(folder)
    with_parameter(model, place, change)
    done, _, faults = audit(folder, record(model, tmp_path / "cand.h5"), tmp_path)
    assert (done.returncode, faults) == (1, {parameter: [fault]})
