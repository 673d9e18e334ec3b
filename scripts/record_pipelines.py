#!/usr/bin/env python3
"""diffusers' own Wan pipelines, tiny and with random weights of a real spread: saved as published ones are, run, and every stage's result recorded.

    record_pipelines.py FOLDER t2v|i2v [--dtype bf16|fp32] [--steps N] [--guidance S] [--scheduler unipc|euler]

FOLDER then holds `pipeline/` (save_pretrained), `inputs.safetensors` (what tokenizer and image processors gave) and `reference.h5` (prompt_embeds, …, timesteps, velocity.N,
latents.N, video); `parity-check generate FOLDER/generation.json` generates the same and compares.
"""
import argparse
import json
import sys
import types
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import diffusers  # noqa: E402
import transformers  # noqa: E402
from diffusers.pipelines.wan import pipeline_wan, pipeline_wan_i2v  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import parity_probe  # noqa: E402
from reference_models.weights import spread_weights  # noqa: E402

FRAMES, HEIGHT, WIDTH = 13, 48, 32
CHANNELS, TEXT, IMAGE = 4, 24, 30    # of latents, text embeddings, image embeddings
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
TRANSFORMER = dict(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=20, out_channels=CHANNELS, text_dim=TEXT, freq_dim=64, ffn_dim=72,
                   num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads")
VAE = dict(base_dim=4, z_dim=CHANNELS, dim_mult=[1, 2, 2, 2], num_res_blocks=1, temperal_downsample=[False, True, True],
           latents_mean=[-0.31, 0.24, 0.52, -0.1], latents_std=[1.7, 0.8, 2.3, 1.1])
SCHEDULERS = {"unipc": lambda: diffusers.UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0),
              "euler": lambda: diffusers.FlowMatchEulerDiscreteScheduler(shift=5.0)}
PROMPTS = {"a cat that reads": 9, "blurred, grey": 5}   # tokens of each


def filled(model, seed):
    return spread_weights(model, seed).eval()


def build(kind, scheduler):
    """The pipeline in float32, without a tokenizer."""
    vae = filled(diffusers.AutoencoderKLWan(**VAE), 402)
    with torch.no_grad():
        vae.decoder.conv_out.weight.mul_(0.5)   # most of the picture inside [-1, 1], where it is cut off
    text = filled(transformers.UMT5EncoderModel(transformers.UMT5Config(
        vocab_size=41, d_model=TEXT, d_kv=8, num_heads=3, d_ff=46, num_layers=2, relative_attention_num_buckets=12, relative_attention_max_distance=20)), 403)
    parts = dict(tokenizer=None, text_encoder=text, vae=vae, scheduler=SCHEDULERS[scheduler]())
    if kind == "t2v":
        return diffusers.WanPipeline(transformer=filled(diffusers.WanTransformer3DModel(in_channels=CHANNELS, **TRANSFORMER), 401), **parts)
    image = transformers.CLIPVisionModel(transformers.CLIPVisionConfig(hidden_size=IMAGE, intermediate_size=58, num_hidden_layers=3, num_attention_heads=3,
                                                                        image_size=15, patch_size=5, hidden_act="gelu"))
    transformer = diffusers.WanTransformer3DModel(in_channels=2 * CHANNELS + 4, image_dim=IMAGE, added_kv_proj_dim=40, **TRANSFORMER)
    return diffusers.WanImageToVideoPipeline(transformer=filled(transformer, 404), image_encoder=filled(image, 405), image_processor=None, **parts)


def load(folder, kind, dtype):
    """As users load it: transformer and text encoder in `dtype`, what decodes and encodes pictures in float32."""
    cls, stages = (diffusers.WanPipeline, {}) if kind == "t2v" else (diffusers.WanImageToVideoPipeline, {})
    stages["vae"] = diffusers.AutoencoderKLWan.from_pretrained(folder / "vae", torch_dtype=torch.float32)
    stages["transformer"] = diffusers.WanTransformer3DModel.from_pretrained(folder / "transformer", torch_dtype=DTYPES[dtype])
    stages["text_encoder"] = transformers.UMT5EncoderModel.from_pretrained(folder / "text_encoder", torch_dtype=DTYPES[dtype])
    if kind == "i2v":
        stages["image_encoder"] = transformers.CLIPVisionModel.from_pretrained(folder / "image_encoder", torch_dtype=torch.float32)
    scheduler = json.loads((folder / "scheduler" / "scheduler_config.json").read_text())["_class_name"]
    stages["scheduler"] = getattr(diffusers, scheduler).from_pretrained(folder / "scheduler")
    return cls(tokenizer=None, **({"image_processor": None} if kind == "i2v" else {}), **stages)


def tokenizer(text, max_length, **_):
    """A stand-in: as many tokens as PROMPTS says, padded; which they are is drawn from the text's length."""
    ids, mask = torch.zeros(len(text), max_length, dtype=torch.long), torch.zeros(len(text), max_length, dtype=torch.long)
    for row, prompt in enumerate(text):
        ids[row, :PROMPTS[prompt]] = torch.randint(2, 41, (PROMPTS[prompt],), generator=torch.Generator().manual_seed(len(prompt)))
        mask[row, :PROMPTS[prompt]] = 1
    return types.SimpleNamespace(input_ids=ids, attention_mask=mask)


def watched(pipe, name, write, owner=None, pick=lambda result: result):
    """What the pipeline's own method gives is written on its way."""
    owner = owner or pipe
    real = getattr(owner, name)

    def call(*args, **kwargs):
        result = real(*args, **kwargs)
        write(pick(result))
        return result
    setattr(owner, name, call)


def inputs_of(kind, tokens, pixels, image):
    prompt, negative = (tokenizer([text], tokens) for text in PROMPTS)
    found = dict(input_ids=prompt.input_ids, attention_mask=prompt.attention_mask, negative_input_ids=negative.input_ids,
                 negative_attention_mask=negative.attention_mask)
    return found | (dict(pixel_values=pixels, image=2 * image - 1) if kind == "i2v" else {})


def run(pipe, kind, writer, inputs, steps, guidance, seed, tokens, image):
    """One generation; every stage's result goes to `writer`. Returns the frames (frames, height, width, 3) in [0, 1]."""
    pipeline_wan.prompt_clean = pipeline_wan_i2v.prompt_clean = lambda text: text
    pipe.tokenizer = tokenizer
    pipe._callback_tensor_inputs = [*pipe._callback_tensor_inputs, "noise_pred"]
    pipe.set_progress_bar_config(disable=True)
    write = lambda name: lambda tensor: writer.write(name, tensor)  # noqa: E731

    def both(pair):
        writer.write("prompt_embeds", pair[0])
        if pair[1] is not None:
            writer.write("negative_prompt_embeds", pair[1])
    watched(pipe, "encode_prompt", both)
    watched(pipe, "decode", write("video"), pipe.vae, lambda result: result[0])
    more = {}
    if kind == "i2v":
        dtype = pipe.transformer.dtype
        pipe.image_processor = lambda images, return_tensors: transformers.BatchFeature({"pixel_values": inputs["pixel_values"]})
        watched(pipe, "encode_image", lambda embeds: writer.write("image_embeds", embeds.to(dtype)))
        watched(pipe, "prepare_latents", lambda pair: writer.write("condition", pair[1]))
        more["image"] = image

    def step_end(_, index, time, values):
        writer.write(f"velocity.{index}", values["noise_pred"])
        writer.write(f"latents.{index}", values["latents"])
        if index == 0:
            writer.write("timesteps", pipe.scheduler.timesteps)
        return {}
    with torch.no_grad():
        return pipe(prompt=list(PROMPTS)[0], negative_prompt=list(PROMPTS)[1] if guidance > 1 else None, height=HEIGHT, width=WIDTH, num_frames=FRAMES,
                    num_inference_steps=steps, guidance_scale=guidance, generator=torch.Generator().manual_seed(seed), max_sequence_length=tokens,
                    callback_on_step_end=step_end, callback_on_step_end_tensor_inputs=["latents", "noise_pred"], output_type="np", **more).frames[0]


# Of what save_pretrained writes, what these pipelines set: the rest are the libraries' defaults, and their own business.
KEPT = {"_class_name", "model_type", *TRANSFORMER, "in_channels", "image_dim", "added_kv_proj_dim", *VAE, "vocab_size", "d_model", "d_kv", "num_heads", "d_ff",
        "num_layers", "relative_attention_num_buckets", "relative_attention_max_distance", "feed_forward_proj", "hidden_size", "intermediate_size",
        "num_hidden_layers", "num_attention_heads", "image_size", "patch_size", "hidden_act", "prediction_type", "use_flow_sigmas", "flow_shift", "shift"}


def trim(pipeline):
    """Leaves of each configuration what KEPT names."""
    for file in [*pipeline.glob("*/config.json"), pipeline / "scheduler" / "scheduler_config.json"]:
        config = json.loads(file.read_text())
        file.write_text(json.dumps({key: value for key, value in sorted(config.items()) if key in KEPT}, indent=1) + "\n")
    index = json.loads((pipeline / "model_index.json").read_text())
    (pipeline / "model_index.json").write_text(json.dumps({key: value for key, value in sorted(index.items()) if key == "_class_name" or isinstance(value, list)},
                                                          indent=1) + "\n")


def record(folder, kind, dtype="fp32", steps=5, guidance=4.0, scheduler="unipc", seed=7, shard="40KB"):
    """Writes `folder`; returns the frames."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "pipeline").exists():
        build(kind, scheduler).save_pretrained(folder / "pipeline", max_shard_size=shard)
        trim(folder / "pipeline")
    tokens = 512 if kind == "i2v" else 16   # the transformer's attention fixes 512 text tokens where there is an image
    g = torch.Generator().manual_seed(seed)
    pixels, image = torch.randn(1, 3, 15, 15, generator=g), torch.rand(1, 3, HEIGHT, WIDTH, generator=g)
    inputs = inputs_of(kind, tokens, pixels, image)
    save_file({name: value.contiguous() for name, value in inputs.items()}, folder / "inputs.safetensors")
    settings = dict(steps=steps, guidance=guidance, frames=FRAMES, height=HEIGHT, width=WIDTH, seed=seed, dtype=dtype)
    (folder / "generation.json").write_text(json.dumps(dict(pipeline="pipeline", inputs="inputs.safetensors", reference="reference.h5", **settings), indent=1) + "\n")
    torch.set_num_threads(2)
    with parity_probe.Writer(folder / "reference.h5", model=f"diffusers' Wan pipeline, {kind}",
                             config=settings) as writer:
        return run(load(folder / "pipeline", kind, dtype), kind, writer, inputs, steps, guidance, seed, tokens, image)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=("t2v", "i2v"))
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--guidance", type=float, default=4.0)
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="unipc")
    parser.add_argument("--shard", default="10GB", help="size of each file of weights (default: one file)")
    args = parser.parse_args()
    record(args.folder, args.kind, args.dtype, args.steps, args.guidance, args.scheduler, shard=args.shard)


if __name__ == "__main__":
    main()
