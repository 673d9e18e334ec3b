"""An Entry of the list: a model class, its configuration and its inputs. It offers what selftest_models.pairs asks of a family: build, run, kernels."""
import importlib
import zlib
from dataclasses import dataclass, field
from typing import Callable

import torch

from selftest_models.family import BOTH, DTYPES

from . import draw
from .fill import fill

KINDS = ("language", "vision", "audio", "diffusion")


@dataclass(frozen=True)
class Entry:
    name: str
    kind: str                # one of KINDS
    model: str               # "library:Class"; transformers': "transformers:Config:Class"
    config: dict             # or a function that makes it, where it holds what a library makes
    inputs: Callable         # inputs(seed) -> list of forward's keyword arguments, one per call
    attention: str = "sdpa"  # transformers' attn_implementation
    cached: bool = False     # the calls share a DynamicCache
    dtypes: tuple = BOTH
    batch: bool = True       # samples do not see each other: the batch may be split
    tables: bool = False     # computed tables are in the model's dtype: the class makes them in torch's default dtype, which from_pretrained sets
    closed: str = ""         # the closed set it belongs to: a folder of catalogue/
    kernels: dict = field(default_factory=dict, compare=False)

    @property
    def half(self):
        """The rule: odd check sums of the names are held out. It knows nothing of the models and never changes. A closed set is one by itself."""
        if self.closed:
            return self.closed
        return "held_out" if zlib.crc32(self.name.encode()) & 1 else "development"

    @property
    def seed(self):
        return 1 + (zlib.crc32(self.name.encode()) + 3571 * draw()) % 9973

    @property
    def library(self):
        return self.model.partition(":")[0]

    @property
    def is_elsewhere(self):
        """In a library that has an environment of its own (requirements-libraries.txt): not one of the tests'."""
        return not self.library.startswith(("transformers", "diffusers"))

    def build(self, dtype, attention=None):
        """A fresh model with its weights, in dtype "fp32" or "bf16"."""
        parts = self.model.split(":")
        library = importlib.import_module(parts[0])
        torch.manual_seed(self.seed)
        config = self.config() if callable(self.config) else self.config
        if len(parts) == 3:
            config = getattr(library, parts[1])(**config, attn_implementation=attention or self.attention)
            model = getattr(library, parts[2])(config)
        else:
            model = getattr(library, parts[1])(**config)
        return cast(fill(model, self.seed), dtype, self.tables)

    def calls(self, dtype):
        return [{k: _floating(v, DTYPES[dtype]) for k, v in call.items()} for call in self.inputs(self.seed)]

    def run(self, model, dtype):
        self.forward(model, self.calls(dtype))

    def forward(self, model, calls):
        extra = {}
        if self.cached:
            from transformers import DynamicCache
            extra = {"past_key_values": DynamicCache(config=model.config), "use_cache": True}
        for call in calls:
            model(**call, **extra)


def _floating(value, dtype):
    if torch.is_tensor(value):
        return value.to(dtype) if value.is_floating_point() else value
    return [_floating(v, dtype) for v in value] if isinstance(value, (list, tuple)) else value


def cast(model, dtype, tables=False):
    """As from_pretrained(dtype=...): buffers that are computed (but not `tables`), and what the class keeps in float32, stay as they are."""
    if dtype == "fp32":
        return model
    patterns = [*(getattr(model, "_keep_in_fp32_modules_strict", None) or [])]
    if type(model).__module__.startswith("diffusers"):
        patterns += getattr(model, "_keep_in_fp32_modules", None) or []
    persistent = set(model.state_dict())
    kept = {name: t.detach().clone() for name, t in [*model.named_buffers(), *model.named_parameters()]
            if (name not in persistent and not tables) or set(name.split(".")) & set(patterns)}
    model.to(DTYPES[dtype])
    for name, value in kept.items():
        owner, leaf = model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
        if leaf in owner._buffers:
            owner._buffers[leaf] = value
        else:
            owner._parameters[leaf].data = value
    return model
