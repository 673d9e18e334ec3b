"""The map that parity-check weights saves pairs the boundaries of recordings, and the weights themselves."""
import json

import pytest

pytest.importorskip("torch")
import weight_faults as wf  # noqa: E402
from reference_models.names import diffusers_name  # noqa: E402
from test_weights import audit, faults, mapping, run, wan  # noqa: E402, F401


def test_saved_map_pairs_the_boundaries(tmp_path):
    diffusers = pytest.importorskip("diffusers")
    import parity_probe
    from test_reference_models import diffusers_twin, inputs, model, run as run_model, run_diffusers
    m = model("wan", text_len=20)
    twin, d = diffusers_twin(m), inputs(m.config)
    for file, record in (("ref.h5", (m, run_model)), ("cand.h5", (twin, run_diffusers))):
        with parity_probe.record(record[0], tmp_path / file):
            record[1](record[0], d)
    assert diffusers
    status, rows, _ = audit(tmp_path, tmp_path / "ref.h5", tmp_path / "cand.h5", "--save-map", tmp_path / "found.map")
    assert (status, faults(rows)) == (0, {})
    text = (tmp_path / "found.map").read_text()
    assert "\nblocks.{i}.norm3 = blocks.{i}.norm2\n" in text and "perm" not in text.split("# The weights")[0]
    done = run("compare", tmp_path / "ref.h5", tmp_path / "cand.h5", "--map", tmp_path / "found.map", "--json", tmp_path / "c.json", "--no-diagnosis")
    assert done.returncode in (0, 1, 3), done.stderr
    pairs = {row["path"]: row["candidate_path"] for row in json.loads((tmp_path / "c.json").read_text())["ops"]}
    for path in ("self_attn.q", "self_attn.norm_k", "cross_attn.o", "norm3", "ffn.0"):
        assert pairs[f"blocks.1.{path}"] == diffusers_name(f"blocks.1.{path}.weight")[:-7]
    assert pairs["head.head"] == "proj_out" and pairs["time_embedding.2"] == "condition_embedder.time_embedder.linear_2"
    (tmp_path / "wrong.map").write_text(text.replace("attn1.to_q.weight", "attn1.to_qq.weight"))
    done = run("compare", tmp_path / "ref.h5", tmp_path / "cand.h5", "--map", tmp_path / "wrong.map")
    assert done.returncode == 2 and "attn1.to_qq.weight" in done.stderr and done.stderr.count("\n") == 1
    (tmp_path / "stray.map").write_text(text + "no.such.weight = proj_out.weight\n")
    done = run("compare", tmp_path / "ref.h5", tmp_path / "cand.h5", "--map", tmp_path / "stray.map")
    assert done.returncode == 2 and "no.such.weight" in done.stderr


def test_saved_map_compares_the_weights_themselves(tmp_path, wan):  # noqa: F811
    candidate = wf.to_jax(wf.to_fused(wan))
    status, rows, _ = audit(tmp_path, wan, candidate, "--save-map", tmp_path / "found.map")
    assert (status, faults(rows)) == (0, {})
    done = run("compare", tmp_path / "reference.safetensors", tmp_path / "candidate.safetensors", "--map", tmp_path / "found.map", "--json", tmp_path / "c.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {r["path"]: r["candidate_path"] for r in json.loads((tmp_path / "c.json").read_text())["ops"]} == mapping(rows)
