"""Level stats from end to end: models recorded, forked, misused, read."""
import os
import subprocess

import h5py
import numpy as np
import pytest
import torch

from test_cpp_probe import ROOT, verify
from test_recorder_replay import one_thread, parity_probe, read_events  # noqa: F401
from test_stats_level import agree, oracle, points, values, wide, written

from parity_probe import blocks, native, sketch, torch_stats
import program


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Dropout(.5), torch.nn.Linear(1024, 256))
        self.norm = torch.nn.LayerNorm(256)
        self.between = None

    def forward(self, x):
        y = self.layers(x)
        z = self.norm(parity_probe.point("sum", x + y))
        return z.transpose(0, 1), y[0]


def recorded(model, x, path, level="stats", mode=torch.no_grad):
    with mode(), parity_probe.record(model, path, level=level):
        return model(x)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad, lambda: torch.autocast("cpu", torch.bfloat16)])
def test_recording_a_model(tmp_path, mode):
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 400, 256)
    with mode():
        want = model(x)
    seen = {}
    hooks = [m.register_forward_hook(lambda m, i, o, n=n: seen.__setitem__(n, o)) for n, m in model.named_modules()]
    with mode():
        model(x)
    for hook in hooks:
        hook.remove()
    before = torch.get_rng_state()
    got = recorded(model, x, tmp_path / "a.h5", mode=mode)
    assert all(torch.equal(a, b) and a.requires_grad == b.requires_grad and a.stride() == b.stride() for a, b in zip(want, got)) and torch.equal(before, torch.get_rng_state())
    found = points(tmp_path / "a.h5")
    recorded(model, x, tmp_path / "sketch.h5", "sketch", mode)
    with h5py.File(tmp_path / "sketch.h5") as f:
        assert list(found) == [(e["path"], e["call"], e["role"]) for e in read_events(f) if e["e"] == "point"]
    seen = {n: o if isinstance(o, torch.Tensor) else o[0] for n, o in seen.items()}
    tensors = {**{(n, 0, "output"): o for n, o in seen.items()}, ("[1]", 0, "output"): want[1], ("x", 0, "input"): x, **{(n, 0, "weight"): w for n, w in model.state_dict().items()}}
    assert tensors.keys() | {("sum", 0, "output")} == found.keys()
    for key, t in tensors.items():
        agree(found[key]["stats"], oracle(wide(t.detach())), 1e-7)
        assert (found[key]["d"], found[key]["s"]) == (str(t.dtype)[6:], list(t.shape))
    assert found["norm", 0, "output"]["class"] == "LayerNorm" and "test_stats_recordings.py" in found["norm", 0, "output"]["src"]
    assert verify(tmp_path / "a.h5") == (0, []) and os.path.getsize(tmp_path / "a.h5") < 100_000


@pytest.mark.parametrize("level", ["stats", "sketch"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_tensor_that_several_modules_return_is_described_once(tmp_path, level, mode, monkeypatch):
    """… unless somebody wrote to it in between, also where PyTorch cannot know (`.data`, a foreign kernel); or where it costs no more to describe it anew."""
    torch.manual_seed(0)
    model, x, described = Model().eval(), torch.randn(2, 800, 256), []
    described_by = {"stats": (torch_stats, "describe"), "sketch": (sketch, "record")}[level]
    plain = getattr(*described_by)

    def counted(*args, **more):
        described.append(args)
        return plain(*args, **more)
    monkeypatch.setattr(*described_by, counted)
    recorded(model, x, tmp_path / "a.h5", level, mode)
    once = len(described)
    class Writes(torch.nn.Dropout):
        def forward(self, x):
            x.data.numpy()[1, 700, 3:5] *= 2
            return x
    model.layers[2] = Writes()
    recorded(model, x, tmp_path / "b.h5", level, mode)
    assert len(described) - once == once + (level != "stats" or native.library() is None)
    found = {}
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5") as f:
            found[name] = {e["path"]: e["stats"] if level == "stats" else (e["sketch"], f["values"][e["sketch"]["k"]][()].tobytes()) for e in read_events(f)
                           if e["e"] == "point" and e["path"] in ("layers.1", "layers.2")}
    assert found["a"]["layers.1"] == found["a"]["layers.2"] == found["b"]["layers.1"] != found["b"]["layers.2"]
    assert verify(tmp_path / "a.h5") == (0, []) and verify(tmp_path / "b.h5") == (0, [])


def test_in_a_forked_process(tmp_path):
    """Threads stay behind in the parent."""
    t = values("float32", (5 * blocks.BLOCK,))
    with parity_probe.Writer(tmp_path / "parent.h5", level="stats") as w:
        w.write("x", t)
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT / 'probes/python')!r})
import numpy as np
from parity_probe import Writer, blocks
blocks.threads = lambda: 2
x = np.arange(5 * blocks.BLOCK, dtype=np.float32)
def write(name):
    with Writer(name, level="stats") as w:
        w.write("x", x)
write(sys.argv[1] + "/a.h5")
if os.fork() == 0:
    signal.alarm(60)
    write(sys.argv[1] + "/b.h5")
    os._exit(0)
sys.exit(os.wait()[1])
"""
    subprocess.run([os.sys.executable, "-c", script, str(tmp_path)], check=True, timeout=120)
    assert points(tmp_path / "a.h5")["x", 0, "output"]["stats"] == points(tmp_path / "b.h5")["x", 0, "output"]["stats"]


def test_misuse(tmp_path):
    with pytest.raises(ValueError, match="level"):
        parity_probe.Writer(tmp_path / "a.h5", level="statistics")
    with pytest.raises(ValueError, match="stats cannot be streamed"):
        parity_probe.Writer("parity://127.0.0.1:9", level="stats")
    with pytest.raises(ValueError, match="level stats"):
        parity_probe.record(Model(), tmp_path / "a.h5", level="stats", shard={"mesh": {"tp": 2}, "at": {"tp": 0}})
    with parity_probe.Writer(tmp_path / "b.h5", level="stats", shard={"mesh": {"tp": 2}, "at": {"tp": 0}}) as w:
        w.write("x", np.ones(3), shard={"tp": "split(0)"})
        with pytest.raises(ValueError, match="level sketch"):
            w.write("x", np.ones(3), shard=(0, 0, 6))
    assert points(tmp_path / "b.h5")["x", 0, "output"]["shard"] == {"tp": "split(0)"}


def test_what_reads_it(tmp_path, capsys):
    """`show` prints the numbers; `compare` and `sketch` say in one line that there is nothing they could work on."""
    written(tmp_path / "a.h5", x=torch.tensor([1.0, -3.0, 0.0, float("nan")]), y=torch.empty(0))
    from parity_probe.command_line import main
    assert main(["show", str(tmp_path / "a.h5")]) == 0
    shown = capsys.readouterr().out
    assert "output x #0: float32[4], mean -0.666667 ± 1.69967, |x| 1.33333, -3 … 1, 1 zero, 1 NaN\n" in shown and "output y #0: float32[0], empty\n" in shown
    done = program.run("inspect", tmp_path / "a.h5")
    assert done.returncode == 0 and "level stats" in done.stdout
    done = program.run("compare", tmp_path / "a.h5", tmp_path / "a.h5")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "a.h5: " in done.stderr
    assert main(["sketch", str(tmp_path / "a.h5"), "-o", str(tmp_path / "b.h5")]) == 2
    assert "statistics" in capsys.readouterr().err
