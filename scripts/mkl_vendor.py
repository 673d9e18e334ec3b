"""MKL chooses its kernels by the maker of the CPU first, then by instructions: this lets it run those of the other maker.

On AMD's CPUs `environment("intel")` brings out what Intel's run (up to AVX-512 with bfloat16; AMX needs the CPU), on Intel's
`environment("other")` what AMD's run. Must hold before LibTorch is loaded: for a program that is started, not for this one.
"""
import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

MAKER = "PARITY_MKL_VENDOR"   # what mkl_vendor.c reads


@functools.cache
def _library():
    """The shared library, compiled once a process; raises CalledProcessError where `cc` cannot."""
    folder = tempfile.mkdtemp(prefix="mkl-vendor-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = Path(folder) / "mkl_vendor.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, Path(__file__).with_suffix(".c")], check=True)
    return library


def environment(maker):
    """Variables for a program that shall see MKL's kernels for `maker`, "intel" or "other"."""
    return {"LD_PRELOAD": str(_library()), MAKER: maker}
