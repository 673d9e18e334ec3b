"""Where a recording comes from: versions, machine, settings that change kernels and so bits. Everything is JSON; what cannot be found out is null."""
import datetime
import os
import platform
import sys

import numpy as np

from . import settings

# Instruction sets that make libraries choose other kernels, and so other roundings.
_FLAGS = {"sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni",
          "amx_tile", "amx_bf16", "amx_int8", "asimd", "sve", "sve2", "bf16", "i8mm"}

# Environment variables that make MKL and oneDNN choose other kernels.
_SETTINGS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "ONEDNN_DEFAULT_FPMATH_MODE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR",
             "MKL_DEBUG_CPU_TYPE")


def _try(f, default=None):
    try:
        return f()
    except Exception:  # a setting this version of a library does not have must not stop a recording
        return default


def json_safe(x, depth=0):
    """`x` as JSON values: mappings and sequences are descended, numbers stay, everything else becomes text."""
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return x if x == x and abs(x) != float("inf") else str(x)
    if depth < 8 and isinstance(x, dict):
        return {str(k): json_safe(v, depth + 1) for k, v in x.items()}
    if depth < 8 and isinstance(x, (list, tuple, set, frozenset)):
        return [json_safe(v, depth + 1) for v in x]
    return _try(lambda: str(x), type(x).__name__)


def _cpu():
    """(model name, the flags of _FLAGS) from the kernel; ("", []) elsewhere."""
    name, flags = platform.processor(), []
    with open("/proc/cpuinfo") as f:
        for line in f:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = sorted(_FLAGS & set(value.split()))
                break
    return name, flags


def collect(config=None):
    """What is known without torch."""
    cpu, flags = _try(_cpu, ("", []))
    return {"time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "numpy": np.__version__, "python": platform.python_version(),
            "platform": platform.platform(), "cpu": cpu, "cpu_flags": flags, "command": " ".join([os.path.basename(sys.executable or "python"), *sys.argv]),
            "config": json_safe(dict(config)) if config is not None else None}


def model_config(model):
    """`model.config` as a dict (transformers, diffusers, dataclass, mapping or plain object), None when there is none."""
    config = getattr(model, "config", None)
    if config is None:
        return None
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    elif not isinstance(config, dict):
        config = _try(lambda: dict(config)) or {k: v for k, v in vars(config).items() if not k.startswith("_")}
    return json_safe(dict(config))


def collect_torch(model):
    """`collect`, and what torch adds to it for `model` (a torch.nn.Module)."""
    import torch
    about = collect(_try(lambda: model_config(model)))
    counts, device = {}, "cpu"
    for p in model.parameters():
        device = str(p.device) if not counts else device
        if p.is_floating_point():
            counts[p.dtype] = counts.get(p.dtype, 0) + p.numel()
    kind = device.split(":")[0]
    about.update(
        torch=torch.__version__, cpu_capability=_try(torch.backends.cpu.get_cpu_capability), mkldnn=_try(lambda: torch.backends.mkldnn.is_available() and
            torch.backends.mkldnn.enabled), threads=torch.get_num_threads(), seed=torch.initial_seed(),
        deterministic=torch.are_deterministic_algorithms_enabled(), training=model.training,
        kernel_settings={name: os.environ[name] for name in _SETTINGS if name in os.environ}, module=type(model).__module__,
        autocast=_try(lambda: {"enabled": torch.is_autocast_enabled(kind), "dtype": str(torch.get_autocast_dtype(kind)).split(".")[1]}),
        dtype=str(max(counts, key=counts.get)).split(".")[1] if counts else None,
        libraries={name: _try(lambda name=name: sys.modules[name].__version__) for name in ("diffusers", "transformers") if name in sys.modules},
        **settings.collect(torch, device))
    return about
