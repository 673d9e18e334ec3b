"""What sets of denoisers share: steps in time and a maker of entries."""
import torch

from ..entry import Entry
from ..inputs import times

TWO_TIMES = times(713, 98)
FLOW_TIMES = times(0.713, 0.098)


def diffusion(name, model, config, inputs, **more):
    return Entry(name, "diffusion", f"diffusers:{model}", config, inputs, **more)


def pairs(first, second):
    """A pair of numbers for each sample: sizes, corners."""
    return lambda _seed: torch.tensor([first, second], dtype=torch.float32)
