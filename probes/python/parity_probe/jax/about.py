"""Provenance that JAX adds: versions, and the settings that change kernels and so bits."""
import os
import sys

import jax

from .. import provenance


def _setting(name):
    return getattr(jax.config, name, None)


def collect(dtypes):
    """JSON values; `dtypes`: {weight: (dtype name, number of elements)}."""
    device, floats = jax.devices()[0], {}
    for dtype, count in dtypes.values():
        if "float" in dtype:
            floats[dtype] = floats.get(dtype, 0) + count
    return {
        "jax": jax.__version__, "jaxlib": _version("jaxlib"), "flax": _version("flax"),
        "libraries": {name: sys.modules[name].__version__ for name in ("transformers", "diffusers")
                      if hasattr(sys.modules.get(name), "__version__")},
        "device": device.platform, "device_name": device.device_kind, "devices": jax.device_count(), "x64": bool(_setting("jax_enable_x64")),
        "matmul_precision": _setting("jax_default_matmul_precision") or "default", "dtype_promotion": _setting("jax_numpy_dtype_promotion"),
        "jit_disabled": bool(_setting("jax_disable_jit")), "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "dtype": max(floats, key=floats.get) if floats else None}


def _version(name):
    from importlib import metadata
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def configuration(target):
    """The model's own configuration: `config`, or the fields of a linen module; None when there is none."""
    config = provenance.model_config(target)
    if config is None and hasattr(target, "__dataclass_fields__"):
        config = {k: getattr(target, k, None) for k in target.__dataclass_fields__ if k not in ("parent", "name")}
    return config
