"""The nouns: a Family is a model with its faults; a Fault is put into a fresh model by one function; a Port is a model with at most one fault."""
import contextlib
from dataclasses import dataclass, field
from typing import Callable

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BOTH, BF16, FP32 = ("fp32", "bf16"), ("bf16",), ("fp32",)


@dataclass(frozen=True)
class Fault:
    """One mistake as a porting engineer makes it."""

    name: str               # part of the file's name
    diagnosis: str          # one of DIAGNOSES
    module: str             # path of the first boundary, in execution order, whose own value is wrong
    put_in: Callable        # put_in(model, patch): changes the model; patch(object, attribute, value) is undone after the run
    note: str               # one sentence: where this fault comes from
    dtypes: tuple = BOTH
    call: int = 0           # which call of the module is the first wrong one
    kernel: str | None = ""  # the benign change that goes with it; "": the family's next one; None: the reference's kernels
    complete: bool = False  # all module outputs are written, not only those of the faulty block
    program: bool = False   # recorded in full by parity_probe.record instead


@dataclass(frozen=True)
class Family:
    name: str
    build: Callable         # build(dtype) -> model with its weights
    run: Callable           # run(model, dtype): one or more forward calls
    seed: int
    blocks: str             # regular expression of the paths of its repeated blocks
    faults: list
    honest: dict            # dtype name -> names of the benign changes that are pairs of their own
    company: dict           # dtype name -> names of those that go with the faults, taken in turn
    neutral: list = ()      # what the faults are built from, without a mistake: must change no bit
    kernels: dict = field(default_factory=dict)   # benign changes of this family alone: name -> put_in(model, patch)


DIAGNOSES = (
    "norm eps", "unbiased variance", "per-head norm", "missing norm gain", "gain", "missing bias", "one plus forgotten", "shift and scale swapped",
    "gate missing", "residual missing", "GELU form", "activation", "RoPE sign", "RoPE axis order", "RoPE pairing", "RoPE theta", "RoPE missing",
    "position off by one", "attention scale", "causal mask missing", "mask off by one", "window off by one", "sink missing", "transposed weight",
    "permuted heads", "weights swapped", "wrong layer's weights", "extra rounding", "missing rounding", "truncation", "NaN origin", "stale value",
    "clamp limit", "expert routing", "wrong normalised axis", "channel order", "causal cache",
)


class Patches(contextlib.ExitStack):
    """Undoes, when it is left, what was changed through it (module-level functions are shared by all models)."""

    def __call__(self, target, name, value):
        had = name in vars(target)
        old = getattr(target, name)
        setattr(target, name, value)
        self.callback(setattr, target, name, old) if had else self.callback(delattr, target, name)


def truncated(x):
    """float32 -> bfloat16 by dropping the low 16 bits, as ports do that reinterpret memory."""
    return (x.float().view(torch.int32) & -65536).view(torch.float32).to(torch.bfloat16)


def rounded(x):
    """float32 that has been through bfloat16."""
    return x.to(torch.bfloat16).to(x.dtype)
