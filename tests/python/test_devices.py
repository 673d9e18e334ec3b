"""Devices: what a recording says of its GPU and of the switches that change arithmetic, and recordings of GPUs judged on this machine's CPU.

No GPU is needed: PyTorch's answers are put in its place, and a CPU's recording is edited into what a GPU's recorder writes. That a GPU's own recorder
writes it is shown by `test_on_a_gpu`, where there is one.
"""
import json
import shutil
import types

import h5py
import numpy as np
import pytest
import torch

import parity_probe
from parity_probe import settings
import program


class Positions(torch.nn.Module):
    """Factories with a device (the input's), an alias of a constant and a product: what changes with the device."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        scale = torch.tensor([2.0], device="cpu").to(x.device)
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device).tril()
        return mask @ self.linear(x * scale) + places.unsqueeze(1)


def recorded(path, change=None):
    torch.manual_seed(0)
    model = Positions().eval()
    if change:
        change(model)
    with torch.no_grad(), parity_probe.record(model, path):
        model(torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1)))
    return path


def as_of_a_gpu(path, target, **provenance):
    """A copy whose devices are a GPU's; how many literals that were."""
    shutil.copy(path, target)
    with h5py.File(target, "r+") as f:
        events = f["trace/events"][()].tobytes()
        devices = events.count(b'{"device":"cpu"}') + events.count(b'{"device": "cpu"}')
        events = events.replace(b'{"device":"cpu"}', b'{"device":"cuda:0"}').replace(b'{"device": "cpu"}', b'{"device": "cuda:0"}')
        del f["trace/events"]
        f.create_dataset("trace/events", data=np.frombuffer(events, np.uint8), maxshape=(None,), chunks=(4096,))
        about = json.loads(f.attrs["provenance"])
        about.update(device="cuda:0", device_name="NVIDIA H100", compute_capability="9.0", cuda="13.0", **provenance)
        f.attrs["provenance"] = json.dumps(about)
    return devices


def run(*arguments):
    return program.run(*arguments)


def provenance_of(path):
    with h5py.File(path) as f:
        return json.loads(f.attrs["provenance"])


def test_a_recording_names_its_device_and_the_switches(tmp_path):
    about = provenance_of(recorded(tmp_path / "a.h5"))
    assert about["device"] == "cpu" and about["device_name"] is None and about["compute_capability"] is None and about["gpu_settings"] is None
    assert about["sdpa"] == {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
    assert about["cudnn"] == {"version": torch.backends.cudnn.version(), "enabled": True, "benchmark": False, "deterministic": False}
    assert about["tf32"] == {"matmul": False, "cudnn": True} and about["matmul_precision"] == "highest"
    assert set(about["reduced_precision_reduction"]) == {"fp16", "bf16"}


def test_switches_that_the_user_set_are_recorded(tmp_path):
    before = torch.backends.cudnn.benchmark, torch.backends.cuda.flash_sdp_enabled()
    try:
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.enable_flash_sdp(False)
        about = provenance_of(recorded(tmp_path / "a.h5"))
    finally:
        torch.backends.cudnn.benchmark = before[0]
        torch.backends.cuda.enable_flash_sdp(before[1])
    assert about["cudnn"]["benchmark"] is True and about["sdpa"]["flash"] is False and about["sdpa"]["math"] is True


class Refusing:
    """A module of PyTorch that knows nothing, or refuses to tell."""

    def __getattr__(self, name):
        raise RuntimeError("mix of the legacy and new APIs")


def fake_torch(matmul, cudnn=None, **precision):
    answers = types.SimpleNamespace(
        cuda=types.SimpleNamespace(get_device_name=lambda device: f"NVIDIA {device}", get_device_capability=lambda device: (10, 0)),
        version=types.SimpleNamespace(cuda="13.0"), get_float32_matmul_precision=lambda: "high",
        backends=types.SimpleNamespace(
            cuda=types.SimpleNamespace(matmul=matmul, flash_sdp_enabled=lambda: True, mem_efficient_sdp_enabled=lambda: False, math_sdp_enabled=lambda: True,
                                       cudnn_sdp_enabled=lambda: False),
            cudnn=cudnn or types.SimpleNamespace(version=lambda: 91002, enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
            mkldnn=Refusing(), **precision))
    return answers


def test_what_a_gpu_answers_is_written_down(monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    matmul = types.SimpleNamespace(allow_tf32=True, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=False)
    about = settings.collect(fake_torch(matmul), "cuda:1")
    assert about == {
        "device": "cuda:1", "device_name": "NVIDIA cuda:1", "compute_capability": "10.0", "cuda": "13.0",
        "cudnn": {"version": 91002, "enabled": True, "benchmark": False, "deterministic": True}, "tf32": {"matmul": True, "cudnn": False},
        "fp32_precision": None, "reduced_precision_reduction": {"fp16": True, "bf16": False},
        "sdpa": {"flash": True, "mem_efficient": False, "math": True, "cudnn": False}, "matmul_precision": "high",
        "gpu_settings": {"NVIDIA_TF32_OVERRIDE": "0"}}
    json.dumps(about, allow_nan=False)


@pytest.mark.parametrize("own, above, wanted", [("tf32", "none", True), ("ieee", "tf32", False), ("none", "tf32", True), ("none", "ieee", False)])
def test_tf32_is_known_by_the_new_names_where_the_old_ones_refuse(own, above, wanted):
    class Matmul(Refusing):
        fp32_precision = own
    cudnn = types.SimpleNamespace(conv=types.SimpleNamespace(fp32_precision="none"), allow_tf32=True)
    about = settings.collect(fake_torch(Matmul(), cudnn, fp32_precision=above), "cuda:0")
    assert about["tf32"] == {"matmul": wanted, "cudnn": True} and about["fp32_precision"]["matmul"] == own
    assert about["reduced_precision_reduction"] == {"fp16": None, "bf16": None} and about["cudnn"]["version"] is None


def test_nothing_that_refuses_stops_a_recording():
    torch_that_refuses = types.SimpleNamespace(backends=types.SimpleNamespace(cuda=Refusing(), cudnn=Refusing(), mkldnn=Refusing()))
    about = settings.collect(torch_that_refuses, "cuda:0")
    assert about["device"] == "cuda:0" and about["device_name"] is None and about["tf32"] == {"matmul": None, "cudnn": None}


def test_a_recording_of_a_gpu_is_replayed_here(tmp_path):
    recorded(tmp_path / "cpu.h5")
    assert as_of_a_gpu(tmp_path / "cpu.h5", tmp_path / "gpu.h5") >= 2
    result = run("replay", tmp_path / "gpu.h5", "--json", tmp_path / "r.json")
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["executed"] and report["reproduced"] and all("randn" in op for op in report["opaque"])  # its input is drawn inside
    assert not report["same_kernels"]  # a GPU's: its bits cannot be asked for here
    assert run("replay", tmp_path / "cpu.h5", "--json", tmp_path / "r.json").returncode == 0
    assert json.loads((tmp_path / "r.json").read_text())["same_kernels"]


def test_a_port_is_judged_by_a_recording_of_a_gpu_and_the_report_says_what_differs(tmp_path):
    recorded(tmp_path / "cpu.h5")
    as_of_a_gpu(tmp_path / "cpu.h5", tmp_path / "gpu.h5", tf32={"matmul": True, "cudnn": True})
    result = run("compare", tmp_path / "gpu.h5", tmp_path / "cpu.h5", "--json", tmp_path / "r.json")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "device cuda:0 (reference), cpu (candidate, judged here)" in result.stdout
    assert "TF32 cudnn on, matmul on (reference), cudnn off, matmul off (judged here)" in result.stdout
    assert "differs" not in run("compare", tmp_path / "cpu.h5", tmp_path / "cpu.h5").stdout

    def wrong_bias(model):
        with torch.no_grad():
            model.linear.bias += 0.01
    recorded(tmp_path / "wrong.h5", wrong_bias)
    result = run("compare", tmp_path / "gpu.h5", tmp_path / "wrong.h5", "--json", tmp_path / "r.json")
    assert result.returncode == 1
    assert json.loads((tmp_path / "r.json").read_text())["first_divergence"]["path"].split("/")[0] == "linear"  # its addmm has the same value


@pytest.mark.parametrize("command", ["compare {0} {0}", "paths {0}", "blame {0} {0}", "replay {0}"])
def test_a_device_that_is_not_there_is_refused_in_one_line(tmp_path, command):
    recorded(tmp_path / "cpu.h5")
    arguments = command.format(tmp_path / "cpu.h5").split()
    for device in ("cuda", "cuda:7", "tpu"):
        if torch.cuda.is_available() and device == "cuda":
            continue
        result = run(*arguments, "--device", device)
        assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1 and f"--device {device}" in result.stderr
    assert run(*arguments, "--device", "cpu").returncode == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(tmp_path):
    torch.manual_seed(0)
    model = Positions().eval().cuda()
    with torch.no_grad(), parity_probe.record(model, tmp_path / "gpu.h5"):
        model(torch.randn(2, 5, 8).cuda())
    about = provenance_of(tmp_path / "gpu.h5")
    assert about["device"] == "cuda:0" and about["device_name"] == torch.cuda.get_device_name(0) and "." in about["compute_capability"]
    assert run("replay", tmp_path / "gpu.h5").returncode == 0
