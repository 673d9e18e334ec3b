"""Recordings against themselves, and the main job, under other settings of the same machine: instruction sets of ATen, oneDNN and MKL, and threads.

The recordings are made on the machine as it is; only parity-check runs under the setting. All exit codes should be 0.
"""
import os
import subprocess
import tempfile
from pathlib import Path

from . import check, produce

SETTINGS = {
    "as it is": {},
    "ATen default": {"ATEN_CPU_CAPABILITY": "default"},
    "ATen avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "ATen avx512": {"ATEN_CPU_CAPABILITY": "avx512"},
    "oneDNN SSE41": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "oneDNN AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "oneDNN AVX512_CORE": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "oneDNN all": {"ONEDNN_MAX_CPU_ISA": "ALL"},
    "MKL AVX2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "MKL compatible": {"MKL_CBWR": "COMPATIBLE"},
    "one thread": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PARITY_ZOO_THREADS": "1"},
    "all AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}


def _code(binary, arguments, environment, limit):
    environment = dict(environment)
    threads = environment.pop("PARITY_ZOO_THREADS", None)
    command = [str(binary), *arguments, "--quiet", *(["--threads", threads] if threads else [])]
    try:
        return subprocess.run(command, capture_output=True, timeout=limit, env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **environment}).returncode
    except subprocess.TimeoutExpired:
        return None


def _text(codes):
    shown = " ".join("-" if c is None else str(c) for c in codes)
    return f"{sum(c == 0 for c in codes)}/{len(codes)} green" + ("" if all(c == 0 for c in codes) else f" (exit codes {shown})")


def run(units, binary, layers="all", limit=check.TIME_LIMIT):
    """Prints a line per setting; returns 0 when every exit code is 0, else 1."""
    with tempfile.TemporaryDirectory(prefix="zoo-settings-") as folder:
        references = []
        for entry, dtype in units:
            references.append(Path(folder) / f"{entry.name}.{dtype}.h5")
            produce.record(references[-1], entry, dtype, "op")
        print("recordings:", ", ".join(r.stem for r in references), flush=True)
        bad = 0
        for name, environment in SETTINGS.items():
            codes = [_code(binary, ["compare", str(r), str(r)], environment, limit) for r in references]
            job = [] if layers == "none" else [_code(binary, ["--layer", layers, "--out", str(Path(folder) / "out")], environment, 1800)]
            bad += sum(c != 0 for c in codes + job)
            print(f"{name:20s} itself {_text(codes)}" + (f"   --layer {layers}: exit {job[0]}" if job else ""), flush=True)
    return 1 if bad else 0
