#!/usr/bin/env python3
"""Records what tests/schedulers_test.cpp and tests/wan_vae_test.cpp hold the C++ code to. Needs torch, diffusers and probes/python.

flow_schedulers.h5   diffusers' flow-matching schedulers as the Wan pipelines set them up, stepping random latents: for each case
                     `<case>.sigmas`, `<case>.timesteps`, `<case>.sample` (the noise, then the result of every step), `<case>.velocity`
wan_vae_names.txt    every parameter of Wan2.1_VAE.pth and the name that diffusers' converter gives it
"""
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "probes" / "python")]
import parity_probe  # noqa: E402

STEPS = 5


def schedulers():
    """Shifts of the pipelines: 3 for 480p, 5 for 720p (pipeline_wan.py); 1 leaves the noise levels where they are."""
    from diffusers import FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler

    for shift in (1.0, 3.0, 5.0):
        yield f"euler.{shift:.0f}", FlowMatchEulerDiscreteScheduler(shift=shift)
        yield f"unipc.{shift:.0f}", UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift)


def record_schedulers():
    with parity_probe.Writer(str(HERE / "flow_schedulers.h5"), config={"steps": STEPS}) as w:
        for name, scheduler in schedulers():
            g = torch.Generator().manual_seed(11)
            scheduler.set_timesteps(STEPS)
            w.write(f"{name}.sigmas", scheduler.sigmas)
            w.write(f"{name}.timesteps", scheduler.timesteps)
            sample = torch.randn(2, 4, 3, 5, 3, generator=g)   # batch, channels, frames, height, width
            target = torch.randn(sample.shape, generator=g)
            w.write(f"{name}.sample", sample)
            for i, time in enumerate(scheduler.timesteps):
                # from the noise towards a clean sample, with an error of its own in every step, as a transformer's has
                velocity = (sample - target) / scheduler.sigmas[i] + 0.3 * torch.randn(sample.shape, generator=g)
                w.write(f"{name}.velocity", velocity)
                sample = scheduler.step(velocity, time, sample, return_dict=False)[0]
                w.write(f"{name}.sample", sample)


def record_names():
    import diffusers
    from diffusers.loaders.single_file_utils import convert_wan_vae_to_diffusers

    known = set(diffusers.AutoencoderKLWan().state_dict())
    ends = [f"{module}.{p}" for module in ("residual.2", "residual.6", "shortcut", "resample.1", "time_conv", "to_qkv", "proj") for p in ("weight", "bias")]
    ends += ["residual.0.gamma", "residual.3.gamma", "norm.gamma"]
    lists = ("encoder.downsamples", "decoder.upsamples", "encoder.middle", "decoder.middle")
    names = [f"{part}.{i}.{end}" for part in lists for i in range(16) for end in ends]
    names += [f"{half}.{end}" for half in ("encoder", "decoder") for end in ("conv1.weight", "conv1.bias", "head.0.gamma", "head.2.weight", "head.2.bias")]
    names += [f"conv{i}.{p}" for i in (1, 2) for p in ("weight", "bias")]
    found = {}
    for name in names:
        (converted,) = convert_wan_vae_to_diffusers({name: None})
        if converted in known:
            assert converted not in found, (name, found[converted])
            found[converted] = name
    assert found.keys() == known, known - found.keys()
    (HERE / "wan_vae_names.txt").write_text("".join(f"{original} {converted}\n" for converted, original in sorted(found.items())))


if __name__ == "__main__":
    torch.set_num_threads(1)
    record_schedulers()
    record_names()
