"""Models of text: decoders with gated mixing in place of attention, linear and fast attention, an
alignment of proteins."""
import argparse
import importlib

import torch

from selftest_models.weights import integers

from ...entry import Entry
from ...inputs import BATCH, also, prompt_mask, tokens


def _ids(length, name="x"):
    return tokens(length, 61, name=name)


def _text(name, model, config, inputs, **more):
    return Entry(name, "language", model, config, inputs, **more)


def _decoder():
    """With rotated queries and keys of unit length, a gated feed-forward layer and norms without a mean."""
    layers = importlib.import_module("x_transformers").Decoder
    return dict(num_tokens=61, max_seq_len=64, use_abs_pos_emb=False,
                attn_layers=layers(dim=48, depth=3, heads=4, attn_dim_head=12, rotary_pos_emb=True, attn_qk_norm=True, ff_glu=True, ff_swish=True, use_rmsnorm=True))


def _alignment():
    alphabet = importlib.import_module("esm").Alphabet.from_architecture("msa_transformer")
    args = argparse.Namespace(layers=2, embed_dim=48, ffn_embed_dim=100, attention_heads=4, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
                              max_tokens_per_msa=2 ** 14, max_tokens=2 ** 14, logit_bias=True, embed_positions_msa=True, max_positions=64)
    return dict(args=args, alphabet=alphabet)


ENTRIES = [
    _text("x_decoder", "x_transformers:TransformerWrapper", _decoder, _ids(29)),
    _text("linear_attention", "linear_attention_transformer:LinearAttentionTransformerLM",
          dict(num_tokens=61, dim=48, depth=2, max_seq_len=64, heads=4, dim_head=12, causal=False, use_axial_pos_emb=False, use_rotary_emb=True, ff_glu=True), _ids(29)),
    _text("fast_attention", "fast_transformer_pytorch:FastTransformer", dict(num_tokens=61, dim=48, depth=2, max_seq_len=64, heads=4, dim_head=12, absolute_pos_emb=True),
          also(_ids(31), mask=prompt_mask(31, 6, torch.bool))),
    _text("mega", "mega_pytorch:Mega", dict(num_tokens=61, dim=48, depth=2, ema_heads=4, attn_dim_qk=20, attn_dim_value=52, laplacian_attn_fn=True), _ids(29), dtypes=("fp32",)),
    _text("gated_mlp", "g_mlp_pytorch:gMLP", dict(num_tokens=61, dim=48, depth=3, seq_len=29, heads=2, attn_dim=16, causal=True), _ids(29)),
    _text("msa_transformer", "esm:MSATransformer", _alignment,
          lambda seed: [{"tokens": 4 + integers("ids", (BATCH, 5, 23), 20, seed)}]),
]
