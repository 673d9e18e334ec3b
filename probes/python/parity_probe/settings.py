"""Switches of PyTorch that choose kernels and their arithmetic, and the GPU that a recording was made on. What cannot be found out is null.

PyTorch has two names for TF32 since 2.9 and refuses to answer by the old ones (`allow_tf32`) once the new ones (`fp32_precision`) were set, so both are asked.
"""
import os

# Environment variables that make CUDA's libraries choose other arithmetic or kernels.
_VARIABLES = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG")


def _try(f):
    try:
        return f()
    except Exception:  # a setting this version of PyTorch does not have, or refuses to tell, must not stop a recording
        return None


def _sdpa(torch):
    cuda = torch.backends.cuda
    return {"flash": _try(lambda: cuda.flash_sdp_enabled()), "mem_efficient": _try(lambda: cuda.mem_efficient_sdp_enabled()),
            "math": _try(lambda: cuda.math_sdp_enabled()), "cudnn": _try(lambda: cuda.cudnn_sdp_enabled())}


def _cudnn(torch):
    cudnn = torch.backends.cudnn
    return {"version": _try(lambda: cudnn.version()), "enabled": _try(lambda: cudnn.enabled), "benchmark": _try(lambda: cudnn.benchmark),
            "deterministic": _try(lambda: cudnn.deterministic)}


def _fp32_precision(torch):
    """Of products, convolutions and recurrent layers: "ieee", "tf32", "bf16", "none" (as the level above says); null before PyTorch 2.9."""
    cuda, cudnn, mkldnn = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    found = {"all": _try(lambda: torch.backends.fp32_precision), "matmul": _try(lambda: cuda.matmul.fp32_precision),
             "conv": _try(lambda: cudnn.conv.fp32_precision), "rnn": _try(lambda: cudnn.rnn.fp32_precision),
             "cpu_matmul": _try(lambda: mkldnn.matmul.fp32_precision)}
    return {name: value for name, value in found.items() if isinstance(value, str)} or None


def _tf32(allowed, precisions, what):
    """May products (convolutions) of fp32 be computed in TF32? `allowed`: what PyTorch says by the old name."""
    if allowed is not None or not precisions:
        return allowed
    precision = precisions.get(what, "none")
    return (precisions.get("all") if precision == "none" else precision) == "tf32"


def _capability(torch, device):
    major, minor = torch.cuda.get_device_capability(device)
    return f"{major}.{minor}"


def collect(torch, device):
    """`device`: where the model lies, as text ("cpu", "cuda:0"). What only a GPU has is null elsewhere."""
    on_gpu = device.split(":")[0] == "cuda"
    matmul, precisions = _try(lambda: torch.backends.cuda.matmul), _fp32_precision(torch)
    return {
        "device": device,
        "device_name": _try(lambda: torch.cuda.get_device_name(device)) if on_gpu else None,
        "compute_capability": _try(lambda: _capability(torch, device)) if on_gpu else None,
        "cuda": _try(lambda: torch.version.cuda),
        "cudnn": _cudnn(torch),
        "tf32": {"matmul": _tf32(_try(lambda: matmul.allow_tf32), precisions, "matmul"),
                 "cudnn": _tf32(_try(lambda: torch.backends.cudnn.allow_tf32), precisions, "conv")},
        "fp32_precision": precisions,
        "reduced_precision_reduction": {"fp16": _try(lambda: matmul.allow_fp16_reduced_precision_reduction),
                                        "bf16": _try(lambda: matmul.allow_bf16_reduced_precision_reduction)},
        "sdpa": _sdpa(torch),
        "matmul_precision": _try(lambda: torch.get_float32_matmul_precision()),
        "gpu_settings": {name: os.environ[name] for name in _VARIABLES if name in os.environ} if on_gpu else None,
    }
