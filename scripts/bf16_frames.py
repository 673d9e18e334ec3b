#!/usr/bin/env python3
"""How far bf16 frames lie from those that fp32 makes of the same weights: diffusers' pipeline here, and the port under kernels that other machines dispatch to.

    bf16_frames.py        the band of tests/python/test_generate.py: dB to the exact frames, and times as far as the reference's

Needs the build and the Python of scripts/test (.venv-models).
"""
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "scripts"), str(ROOT / "probes/python")]

import record_pipelines  # noqa: E402
import test_generate  # noqa: E402

SETTINGS = [("avx512", None), ("avx2", None), ("default", None), ("avx512", "AVX2"), ("avx2", "SSE41"), ("default", "AVX512_CORE")]   # ATen's kernels, oneDNN's


def under(capability, isa, folder):
    os.environ["ATEN_CPU_CAPABILITY"] = capability
    os.environ.pop("ONEDNN_MAX_CPU_ISA", None)
    if isa:
        os.environ["ONEDNN_MAX_CPU_ISA"] = isa
    test_generate.compared(folder, "--dtype", "bf16", "--out", folder / "out.npy")
    return np.load(folder / "out.npy")


def main():
    print("| clip | ATen | oneDNN | reference to exact, dB | port to exact, dB | times as far |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("t2v", "i2v"):
            frames = {}
            for dtype in ("fp32", "bf16"):
                folder = Path(scratch) / f"{kind}-{dtype}"
                folder.mkdir()
                frames[dtype] = record_pipelines.record(folder, kind, dtype, scheduler="unipc")
            for capability, isa in SETTINGS:
                ours, exact = under(capability, isa, folder), frames["fp32"]
                times = test_generate.far(exact, ours) / test_generate.far(exact, frames["bf16"])
                print(f"| {kind} | {capability} | {isa or 'any'} | {test_generate.psnr(exact, frames['bf16']):.2f} | {test_generate.psnr(exact, ours):.2f} | {times:.2f} |", flush=True)


if __name__ == "__main__":
    main()
