"""A pipeline of diffusers' written as Wan's original repository publishes it: other names, .pth files, q, k and v of the image encoder in one tensor.

The names are those of diffusers' and transformers' converters, backwards; nothing here comes from the program that reads them.
"""
import json
import re

import torch
from safetensors.torch import load_file, save_file

TRANSFORMER = [(r"^condition_embedder\.time_embedder\.linear_1", "time_embedding.0"), (r"^condition_embedder\.time_embedder\.linear_2", "time_embedding.2"),
               (r"^condition_embedder\.text_embedder\.linear_1", "text_embedding.0"), (r"^condition_embedder\.text_embedder\.linear_2", "text_embedding.2"),
               (r"^condition_embedder\.time_proj", "time_projection.1"), (r"^condition_embedder\.image_embedder\.norm1", "img_emb.proj.0"),
               (r"^condition_embedder\.image_embedder\.ff\.net\.0\.proj", "img_emb.proj.1"), (r"^condition_embedder\.image_embedder\.ff\.net\.2", "img_emb.proj.3"),
               (r"^condition_embedder\.image_embedder\.norm2", "img_emb.proj.4"), (r"^scale_shift_table", "head.modulation"), (r"^proj_out", "head.head"),
               (r"(blocks\.\d+)\.scale_shift_table", r"\1.modulation"), (r"\.attn2\.add_k_proj", ".cross_attn.k_img"), (r"\.attn2\.add_v_proj", ".cross_attn.v_img"),
               (r"\.attn2\.norm_added_k", ".cross_attn.norm_k_img"), (r"\.attn1\.", ".self_attn."), (r"\.attn2\.", ".cross_attn."), (r"\.to_([qkv])\.", r".\1."),
               (r"\.to_out\.0\.", ".o."), (r"(blocks\.\d+)\.norm2\.", r"\1.norm3."), (r"\.ffn\.net\.0\.proj", ".ffn.0"), (r"\.ffn\.net\.2", ".ffn.2")]
RESIDUAL = [(r"\.norm1\.", ".residual.0."), (r"\.conv1\.", ".residual.2."), (r"\.norm2\.", ".residual.3."), (r"\.conv2\.", ".residual.6."), (r"\.conv_shortcut\.", ".shortcut.")]
VAE = [(r"^quant_conv", "conv1"), (r"^post_quant_conv", "conv2"), (r"^(en|de)coder\.conv_in", r"\1coder.conv1"), (r"^(en|de)coder\.norm_out", r"\1coder.head.0"),
       (r"^(en|de)coder\.conv_out", r"\1coder.head.2"), (r"\.mid_block\.resnets\.0\.", ".middle.0."), (r"\.mid_block\.attentions\.0\.", ".middle.1."),
       (r"\.mid_block\.resnets\.1\.", ".middle.2."), (r"\.down_blocks\.", ".downsamples.")]
TEXT = [(r"^shared", "token_embedding"), (r"^encoder\.final_layer_norm", "norm"), (r"^encoder\.block", "blocks"), (r"\.layer\.0\.SelfAttention\.relative_attention_bias", ".pos_embedding.embedding"),
        (r"\.layer\.0\.SelfAttention", ".attn"), (r"\.layer\.0\.layer_norm", ".norm1"), (r"\.layer\.1\.layer_norm", ".norm2"), (r"\.layer\.1\.DenseReluDense\.wi_0", ".ffn.gate.0"),
        (r"\.layer\.1\.DenseReluDense\.wi_1", ".ffn.fc1"), (r"\.layer\.1\.DenseReluDense\.wo", ".ffn.fc2")]
IMAGE = [(r"^vision_model\.", ""), (r"^embeddings\.patch_embedding", "patch_embedding"), (r"^pre_layrnorm", "pre_norm"), (r"^post_layernorm", "post_norm"), (r"^encoder\.layers", "transformer"),
         (r"\.layer_norm", ".norm"), (r"\.self_attn\.out_proj", ".attn.proj"), (r"\.mlp\.fc1", ".mlp.0"), (r"\.mlp\.fc2", ".mlp.2")]


def renamed(rules, name):
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def weights(folder):
    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


def vae_name(name, blocks):
    """The decoder's layers are counted through: each level's residual blocks, then what doubles the size."""
    level = re.match(r"decoder\.up_blocks\.(\d+)\.(resnets|upsamplers)\.(\d+)\.(.*)", name)
    if level:
        place = int(level[1]) * (blocks + 2) + (int(level[3]) if level[2] == "resnets" else blocks + 1)
        name = f"decoder.upsamples.{place}.{level[4]}"
    name = renamed(VAE, name)
    return renamed(RESIDUAL, name) if re.match(r"(en|de)coder\.(downsamples|upsamples|middle)\.\d+\.(norm|conv)", name) else name


def image_weights(folder):
    named = {renamed(IMAGE, name): tensor for name, tensor in weights(folder).items() if "position_ids" not in name}
    found = {}
    for name, tensor in named.items():
        if name.endswith("class_embedding"):
            found["cls_embedding"] = tensor.reshape(1, 1, -1)
        elif name.endswith("position_embedding.weight"):
            found["pos_embedding"] = tensor[None]
        elif ".self_attn.q_proj" in name:
            found[name.replace("self_attn.q_proj", "attn.to_qkv")] = torch.cat([named[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")])
        elif ".self_attn." not in name:
            found[name] = tensor
    return {f"visual.{name}": tensor for name, tensor in found.items()} | {"textual.token_embedding.weight": torch.ones(2, 3), "log_scale": torch.zeros(())}


def write(pipeline, folder):
    """`pipeline`: save_pretrained's folder. Returns what the files do not say and the originals keep in their code: settings for the JSON file of `generate`."""
    folder.mkdir()
    config = {stage: json.loads((pipeline / stage / "config.json").read_text()) for stage in ("transformer", "vae", "text_encoder")}
    t, image = config["transformer"], (pipeline / "image_encoder").is_dir()
    settings = dict(vae={key: config["vae"][key] for key in ("latents_mean", "latents_std")},
                    text_encoder={"relative_attention_max_distance": config["text_encoder"]["relative_attention_max_distance"]},
                    scheduler={"flow_shift": json.loads((pipeline / "scheduler/scheduler_config.json").read_text())["flow_shift"]})
    original = dict(_class_name="WanModel", model_type="i2v" if image else "t2v", dim=t["num_attention_heads"] * t["attention_head_dim"], num_heads=t["num_attention_heads"],
                    num_layers=t["num_layers"], ffn_dim=t["ffn_dim"], freq_dim=t["freq_dim"], in_dim=t["in_channels"], out_dim=t["out_channels"], text_dim=t["text_dim"], text_len=512)
    if image:
        vision = json.loads((pipeline / "image_encoder/config.json").read_text())
        settings["image_encoder"] = {"num_attention_heads": vision["num_attention_heads"]}
        original |= dict(image_dim=t["image_dim"], image_tokens=1 + (vision["image_size"] // vision["patch_size"]) ** 2)
        torch.save(image_weights(pipeline / "image_encoder"), folder / "models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth")
    (folder / "config.json").write_text(json.dumps(original))
    save_file({renamed(TRANSFORMER, name): tensor for name, tensor in weights(pipeline / "transformer").items()}, folder / "diffusion_pytorch_model.safetensors")
    torch.save({vae_name(name, config["vae"]["num_res_blocks"]): tensor for name, tensor in weights(pipeline / "vae").items()}, folder / "Wan2.1_VAE.pth")
    torch.save({renamed(TEXT, name): tensor for name, tensor in weights(pipeline / "text_encoder").items() if name != "encoder.embed_tokens.weight"}, folder / "models_t5_umt5-xxl-enc-bf16.pth")
    return settings
