#!/usr/bin/env python3
"""Records the small models that tests/trace_recorded_test.cpp replays. Needs torch, transformers, diffusers and probes/python.

gpt2      KV cache over three calls, tied weights, integer inputs; level op
vae       diffusers' Wan VAE: causal convolutions with a feature cache, outputs clamped in place; level module
sampling  two steps of a sampler with diffusers' Wan transformer in bf16 (two samples): latents are kept in fp32 and cast,
          like the text, in each step, so recorded ops outside of the model make its arguments; level module
in_place  views of views written through, a running mean, a loop over a static cache, masks, complex rotation, int / int,
          factories without a dtype, a result whose size depends on values; level op

Same seed and same kind of CPU: same bits. On another CPU the tests compare with a tolerance and say so.
"""
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "probes" / "python"), str(HERE.parents[1] / "scripts")]
import parity_probe  # noqa: E402
from reference_models.weights import spread_weights  # noqa: E402


def record(name, model, run, level="op"):
    with torch.no_grad(), parity_probe.record(model.eval(), str(HERE / f"{name}.h5"), level=level):
        run()


def gpt2():
    from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=16, n_head=2, vocab_size=20, n_positions=12, bos_token_id=0, eos_token_id=0)).to(torch.bfloat16)
    tokens = torch.randint(0, 20, (1, 7))

    def run():
        cache = DynamicCache()
        for part in (tokens[:, :5], tokens[:, 5:6], tokens[:, 6:7]):
            model(input_ids=part, past_key_values=cache, use_cache=True)
    record("gpt2", model, run)


def vae():
    from diffusers import AutoencoderKLWan

    model = AutoencoderKLWan(base_dim=4, z_dim=2, dim_mult=[1, 1], num_res_blocks=1, attn_scales=[], temperal_downsample=[True], latents_mean=[0.0] * 2,
                             latents_std=[1.0] * 2)
    video = torch.randn(1, 3, 5, 8, 8)
    record("vae", model, lambda: model(video, return_dict=False), level="module")


def sampling():
    import accelerate  # noqa: F401  without it diffusers refuses to keep some modules in float32
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=6, in_channels=4, out_channels=4, ffn_dim=20, num_layers=1, text_dim=10,
                                  freq_dim=16, rope_max_seq_len=8)
    with tempfile.TemporaryDirectory() as folder:   # as users load it: what the class keeps in float32 stays there
        spread_weights(model, 7).save_pretrained(folder)
        model = WanTransformer3DModel.from_pretrained(folder, torch_dtype=torch.bfloat16)
    model.register_to_config(_name_or_path="")
    latents, text = torch.randn(2, 4, 2, 6, 10), torch.randn(2, 7, 10)

    def run():
        x = latents
        for time in (998, 713):
            velocity = model(x.to(torch.bfloat16), torch.tensor([time, time]), text.to(torch.bfloat16), return_dict=False)[0]
            x = x - 0.25 * velocity.float()
        return x
    record("sampling", model, run, level="module")


class InPlace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros(4, 8))
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        y = self.linear(x)                                  # (4, 8)
        y.view(2, 2, 8)[:, 1].mul_(2).transpose(0, 1)[0].add_(1)
        for i in range(4):
            self.cache[i].copy_(y[i])
        self.mean.lerp_(y.mean(0), 0.25)
        steps = torch.arange(4) / 3                         # int / int: the default dtype
        scale = torch.full((4, 1), 0.5) + steps[:, None]    # a factory without a dtype
        turn = torch.polar(torch.ones(4, 4), torch.linspace(0, 1, 16).view(4, 4))
        rotated = torch.view_as_real(torch.view_as_complex(y.view(4, 4, 2)) * turn).flatten(1)
        mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
        scores = (rotated @ self.cache.T).masked_fill(mask, float("-inf")).softmax(-1, dtype=torch.float32).to(x.dtype)
        buffer = torch.empty_like(y)
        torch.mul(scores @ y, scale, out=buffer)
        buffer[:, ::2].clamp_(-1, 1)
        y.copy_(buffer)
        return y, self.mean, buffer[buffer > 0].sum()


def in_place():
    model = InPlace()
    x = torch.randn(4, 8)
    record("in_place", model, lambda: (model(x), model(x + 1)))


if __name__ == "__main__":
    for make in (gpt2, vae, sampling, in_place):
        torch.manual_seed(7)
        torch.set_num_threads(2)
        make()
