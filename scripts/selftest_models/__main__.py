"""python -m selftest_models FAMILY DTYPE CHANGE FILE: the boundaries of one benign run, for changes that must hold before PyTorch loads."""
import sys

import torch

from . import kernels, pairs
from .families import FAMILIES

family, dtype, kernel, file = sys.argv[1:]
assert kernels.here(kernel), f"the environment is not that of {kernel!r}"
torch.save(pairs.listen(FAMILIES[family], dtype, None, kernel), file)
