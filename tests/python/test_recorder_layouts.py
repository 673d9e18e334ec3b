"""Tensors that lie in memory in unusual ways: kernels are chosen by it, so a recording keeps it, and both replayers (h5py alone, and parity-check) restore it."""
import json
import os

import h5py
import pytest
import torch

from test_recorder_replay import Replay, load, one_thread, parity_probe, replay, same  # noqa: F401
from test_recorder_traps import Fn, leaves
import program

F = torch.nn.functional


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


# {name: (tensor, which attribute keeps its strides)}
LAYOUTS = {
    "every other column": (randn(4, 64)[:, ::2], "loose_strides"),
    "a part": (randn(33, 130)[1:, 1:], "loose_strides"),
    "a part in bf16": (randn(33, 130).bfloat16()[1:, 1:], "loose_strides"),
    "one of three heads": (randn(2, 7, 3 * 24)[..., 24:48], "loose_strides"),
    "expanded rows": (randn(1, 64).expand(4, 64), "loose_strides"),
    "expanded columns of a part": (randn(8, 3)[::2, :1].expand(4, 64), "loose_strides"),
    "transposed": (randn(64, 33).t(), "strides"),
    "channels last": (randn(2, 32, 9, 9).contiguous(memory_format=torch.channels_last), "strides"),
    "channels last, one channel": (randn(2, 1, 9, 9).as_strided((2, 1, 9, 9), (81, 1, 9, 1)), "strides"),
    "channels last, cropped": (randn(2, 32, 9, 9).contiguous(memory_format=torch.channels_last)[..., 1:-1, 1:-1], "loose_strides"),
    "beyond an address of 64 bytes": (randn(33 * 64 + 3)[3:].view(33, 64), None),
}


def everything(m, x):
    """What takes one kernel or another by how `x` lies in memory."""
    results = [F.gelu(x), F.silu(x), x.sum(-1), x.sum(0), x.mean(), x.softmax(-1), F.layer_norm(x, x.shape[-1:])]
    if x.dim() == 4:
        weight = m.kernel[:, :x.shape[1]].to(x.dtype)
        results += [F.conv2d(x, weight, padding=1), F.group_norm(x, 1), F.avg_pool2d(x, 3, 1, 1)]
    else:
        results += [x @ x.transpose(-1, -2), F.linear(x, m.square[:, :x.shape[-1]].to(x.dtype)), F.linear(m.square[:5, :x.shape[-1]].to(x.dtype), x.reshape(-1, x.shape[-1]))]
    return results


def place(t):
    return t.stride(), t.data_ptr() % 64


def parity_check(*arguments):
    done = program.run(*arguments, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("level", ["op", "module"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_leaves_are_replayed_where_they_lay(tmp_path, name, level):
    x, attribute = LAYOUTS[name]
    net, recorded = Fn(everything, kernel=randn(48, 32, 3, 3), square=randn(40, 130)), tmp_path / "a.h5"
    with torch.no_grad(), parity_probe.record(net, recorded, level=level):
        net(x)
    r = replay(recorded)
    stored = r.file["inputs/0/args.0"]
    assert {a for a in ("strides", "loose_strides") if a in stored.attrs} == ({attribute} if attribute else set())
    assert place(load(stored)) == place(x) and same(load(stored), x)
    r.file.close()
    json_file = tmp_path / "r.json"
    done = parity_check("replay", recorded, "--json", json_file)
    found = json.loads(json_file.read_text())
    if found["same_kernels"]:
        assert all(row["bitwise_equal_share"] == 1 for row in found["boundaries"]), done.stdout
    if level == "op":  # what parity-check writes is a recording like ours
        parity_check("extract", recorded, "--layer", "/gelu.0", "-o", tmp_path / "part.h5")
        replay(tmp_path / "part.h5").file.close()
        parity_check("replay", tmp_path / "part.h5")


def test_weights_keep_their_layout(tmp_path):
    """A transposed weight, as from a checkpoint of x @ w; and one out of a fused one."""
    layer, x = torch.nn.Linear(33, 40), randn(5, 33)
    layer.weight = torch.nn.Parameter(randn(33, 40).t(), requires_grad=False)
    part = torch.nn.Linear(40, 24, bias=False)
    part.weight = torch.nn.Parameter(randn(3, 24, 80)[1, :, ::2], requires_grad=False)
    net = torch.nn.Sequential(layer, part)
    with torch.no_grad(), parity_probe.record(net, tmp_path / "a.h5"):
        net(x)
    r = replay(tmp_path / "a.h5")
    for name, weight in (("0.weight", layer.weight), ("1.weight", part.weight)):
        assert place(load(r.file["weights"][name])) == place(weight)


def test_results_that_are_taken_from_the_file_lie_as_they_did(tmp_path):
    """Random numbers are not computed again: transposed ones must be transposed when the next op reads them."""
    def f(m, x):
        noise = torch.randn(64, 33).t()
        strided = torch.ops.aten.normal_functional(x[:, ::2])
        return noise @ noise.t(), F.gelu(noise), F.gelu(strided), strided @ strided.t()
    net = Fn(f)
    with parity_probe.record(net, tmp_path / "a.h5", level="module"):
        net(randn(4, 64))
    replay(tmp_path / "a.h5")


@pytest.mark.parametrize("x", [randn(70).unfold(0, 64, 1), randn(4, 1000)[:, :1], randn(4, 0)[:, ::2]])
def test_layouts_that_are_not_kept(tmp_path, x):
    """Windows that overlap, elements spread over 1000 times their size, none at all: values alone."""
    net = Fn(lambda m, x: x + 1)
    with parity_probe.record(net, tmp_path / "a.h5"):
        net(x)
    with h5py.File(tmp_path / "a.h5") as f:
        stored = f["inputs/0/args.0"]
        assert "strides" not in stored.attrs and "loose_strides" not in stored.attrs and same(load(stored), x)


def test_what_lies_between_the_elements_is_not_recorded(tmp_path):
    """An alias of a strided input's memory is a leaf of its own: the gaps of the first are nobody's values."""
    whole = randn(4, 64)
    net = Fn(lambda m, a, b: F.gelu(a) + b)
    with torch.no_grad(), parity_probe.record(net, tmp_path / "a.h5"):
        net(whole[:, ::2], whole[:, 1::2])
    r = replay(tmp_path / "a.h5")
    assert all("alias" not in e for e in leaves(r))
