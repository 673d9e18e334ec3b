"""Parameter names of the original repositories -> those of diffusers."""
import re

# first match wins; anchored at a whole path component
_RULES = [
    (r"^head\.head\.", "proj_out."),
    (r"^head\.modulation$", "scale_shift_table"),
    (r"\.modulation$", ".scale_shift_table"),
    (r"^text_embedding\.0\.", "condition_embedder.text_embedder.linear_1."),
    (r"^text_embedding\.2\.", "condition_embedder.text_embedder.linear_2."),
    (r"^time_embedding\.0\.", "condition_embedder.time_embedder.linear_1."),
    (r"^time_embedding\.2\.", "condition_embedder.time_embedder.linear_2."),
    (r"^time_projection\.1\.", "condition_embedder.time_proj."),
    (r"^fps_projection\.0\.", "fps_projection.net.0.proj."),
    (r"^fps_projection\.2\.", "fps_projection.net.2."),
    (r"^img_emb\.proj\.0\.", "condition_embedder.image_embedder.norm1."),
    (r"^img_emb\.proj\.1\.", "condition_embedder.image_embedder.ff.net.0.proj."),
    (r"^img_emb\.proj\.3\.", "condition_embedder.image_embedder.ff.net.2."),
    (r"^img_emb\.proj\.4\.", "condition_embedder.image_embedder.norm2."),
    (r"\.self_attn\.o\.", ".attn1.to_out.0."),
    (r"\.self_attn\.([qkv])\.", r".attn1.to_\1."),
    (r"\.self_attn\.", ".attn1."),
    (r"\.cross_attn\.o\.", ".attn2.to_out.0."),
    (r"\.cross_attn\.([kv])_img\.", r".attn2.add_\1_proj."),
    (r"\.cross_attn\.norm_k_img\.", ".attn2.norm_added_k."),
    (r"\.cross_attn\.([qkv])\.", r".attn2.to_\1."),
    (r"\.cross_attn\.", ".attn2."),
    (r"\.norm3\.", ".norm2."),   # the originals number their norms in another order
    (r"\.norm2\.", ".norm3."),
    (r"\.ffn\.0\.", ".ffn.net.0.proj."),
    (r"\.ffn\.2\.", ".ffn.net.2."),
]


def diffusers_name(original):
    for pattern, replacement in _RULES:
        name, hits = re.subn(pattern, replacement, original)
        if hits:
            return name
    return original
