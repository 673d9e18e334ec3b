"""`parity-check generate --teacache X` beside diffusers' own pipeline whose blocks are kept and reused by the rule of the paper (arXiv 2411.19108), written here once more."""
import json

import numpy as np
import pytest
from test_generate import SIZES, compared, generate, psnr, record_pipelines

torch = pytest.importorskip("torch")
import parity_probe  # noqa: E402


class Blocks(torch.nn.Module):
    """In the place of a transformer's blocks. The pipeline calls them for the prompt and for the negative prompt in turn: each has its own memory."""

    def __init__(self, blocks, threshold, steps, streams):
        super().__init__()
        self.inner, self.threshold, self.steps, self.streams = blocks, threshold, steps, streams
        self.calls, self.reused, self.memory = 0, [], [dict(sum=0., last=None, added=None) for _ in range(streams)]

    def forward(self, hidden, context, modulation, rotary):
        step, stream = divmod(self.calls, self.streams)
        self.calls += 1
        memory = self.memory[stream]
        if memory["last"] is not None:
            memory["sum"] += ((modulation - memory["last"]).abs().mean() / memory["last"].abs().mean()).item()
        memory["last"] = modulation.clone()
        if memory["added"] is not None and memory["sum"] < self.threshold and step < self.steps - 1:
            self.reused += [step] if stream == 0 else []
            return hidden + memory["added"]
        result, memory["sum"] = hidden, 0.
        for block in self.inner:
            result = block(result, context, modulation, rotary)
        memory["added"] = result - hidden
        return result


def reference(folder, kind, threshold, guidance):
    """Frames and reused steps of diffusers' pipeline, recorded as FOLDER/cached.h5."""
    pipe = record_pipelines.load(folder / "pipeline", kind, "fp32")
    blocks = Blocks(pipe.transformer.blocks, threshold, SIZES["--steps"], 2 if guidance > 1 else 1)
    pipe.transformer.blocks = torch.nn.ModuleList([blocks])
    tokens, seed = 512 if kind == "i2v" else 16, SIZES["--seed"]
    g = torch.Generator().manual_seed(seed)
    pixels, image = torch.randn(1, 3, 15, 15, generator=g), torch.rand(1, 3, record_pipelines.HEIGHT, record_pipelines.WIDTH, generator=g)
    inputs = record_pipelines.inputs_of(kind, tokens, pixels, image)
    with parity_probe.Writer(folder / "cached.h5", model="with TeaCache", config={}) as writer:
        return record_pipelines.run(pipe, kind, writer, inputs, SIZES["--steps"], guidance, seed, tokens, image), blocks.reused


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            record_pipelines.record(made[kind], kind)
        return made[kind]
    return of


@pytest.mark.parametrize("kind, threshold, guidance", [("t2v", 1.5, 4), ("t2v", 1e9, 4), ("t2v", 1.5, 1), ("i2v", .5, 4)])
def test_frames_and_reused_steps(recorded, kind, threshold, guidance):
    folder = recorded(kind)
    frames, reused = reference(folder, kind, threshold, guidance)
    assert (reused == [1, 2, 3]) if threshold > 2 else 0 < len(reused) < 3, reused
    done = generate(folder, "--dtype", "fp32", "--teacache", threshold, "--guidance", guidance, "-o", folder / "out.npy", "--json", folder / "out.json",
                    "--reference", folder / "cached.h5")
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "out.json").read_text())
    assert result["reused_steps"] == reused and result["config"]["teacache"] == threshold
    assert f"TeaCache: {len(reused)} of 5 steps" in done.stdout
    assert psnr(frames, np.load(folder / "out.npy")) >= 80
    assert all(stage["forced_rel_l2"] < 1e-4 for stage in result["comparison"]["stages"])


def test_what_it_does_to_the_frames_is_said(recorded):
    """Beside the full run: the error begins at the first step that was not computed, and is TeaCache's."""
    folder = recorded("t2v")
    found = compared(folder, "--dtype", "fp32", "--teacache", 1.5, "--blame")
    result = json.loads((folder / "out.json").read_text())
    first = result["reused_steps"][0]
    error = {stage["name"]: stage["forced_rel_l2"] for stage in found["stages"]}
    assert error[f"velocity.{first}"] > 1e-3 and all(error[f"velocity.{i}"] < 1e-4 for i in range(first))
    assert found["psnr"] < 60 and found["blame"][0]["part"] == "transformer"
    assert result["reused_steps"] == sorted(set(result["reused_steps"]))


def test_none_is_the_full_run(recorded):
    folder = recorded("t2v")
    assert generate(folder, "--dtype", "fp32", "-o", folder / "full.npy").returncode == 0
    assert generate(folder, "--dtype", "fp32", "--teacache", 0, "-o", folder / "none.npy", "--json", folder / "none.json").returncode == 0
    assert np.array_equal(np.load(folder / "full.npy"), np.load(folder / "none.npy"))
    assert json.loads((folder / "none.json").read_text())["reused_steps"] == []


def test_a_bad_threshold_is_one_line(recorded):
    done = generate(recorded("t2v"), "--teacache", -1)
    assert done.returncode == 2 and "teacache" in done.stderr
