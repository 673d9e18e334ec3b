#!/usr/bin/env python3
"""word_sampling.json: the probabilities that transformers' own warpers make of logits, for tests/sampling_test.cpp. Run with .venv-models."""
import json
from pathlib import Path

import torch
import transformers
from transformers.generation import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

CASES = [dict(temperature=1.0), dict(temperature=0.7), dict(temperature=2.5), dict(temperature=1.0, top_k=3), dict(temperature=1.0, top_k=40), dict(temperature=1.0, top_p=0.8),
         dict(temperature=1.0, top_p=1e-4), dict(temperature=0.6, top_k=5, top_p=0.9), dict(temperature=1.3, top_k=2, top_p=0.5)]


def probabilities(logits, temperature, top_k=0, top_p=1.0):
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])  # in the order of generate()
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    return warpers(None, logits).softmax(-1)


def main():
    logits = 3 * torch.randn(3, 16, generator=torch.Generator().manual_seed(7))
    logits[1, 4] = logits[1, 9] = logits[1].sort().values[-3]   # several are the third largest
    logits[2] = torch.linspace(-80, 80, 16)                     # nearly certain
    cases = [dict(case, fp32=probabilities(logits, **case).tolist(), fp64=probabilities(logits.double(), **case).tolist()) for case in CASES]
    out = dict(producer=f"transformers {transformers.__version__}, torch {torch.__version__}", logits=logits.tolist(), cases=cases)
    Path(__file__).with_name("word_sampling.json").write_text(json.dumps(out) + "\n")


if __name__ == "__main__":
    main()
