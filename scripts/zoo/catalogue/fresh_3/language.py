"""Models of text: decoders with caches, dynamic masks, compressed convolutional attention, routed experts; encoders of characters and pages; encoder-decoder
models."""
import torch

from selftest_models.weights import integers

from ...inputs import BATCH, also, sequence_pair, tokens
from ..texts import SMALL, WORDS, WIDE, decoder, text


def _boxes(length):
    """Left, top, right and bottom of each word on a page of 100 by 100."""
    def make(seed):
        corner, size = (integers(name, (BATCH, length, 2), most, seed) for name, most in (("corner", 60), ("size", 40)))
        return torch.cat([corner, corner + size], dim=-1)
    return make


def _first_token(length):
    def make(_seed):
        mask = torch.zeros(BATCH, length, dtype=torch.long)
        mask[:, 0] = 1
        return mask
    return make


ENTRIES = [
    decoder("biogpt", "BioGpt", **WIDE, max_position_embeddings=64),
    decoder("openai_gpt", "OpenAIGPT", tokens(45, WORDS, pad=11), "eager", "LMHeadModel", True, n_embd=104, n_layer=2, n_head=4,
            n_positions=64),
    decoder("cpmant", "CpmAnt", tokens(19, WORDS), "eager", hidden_size=48, num_attention_heads=4, dim_head=12, dim_ff=100, num_hidden_layers=2,
            position_bias_num_buckets=8, position_bias_max_distance=24, prompt_types=3, prompt_length=5, segment_types=3),
    decoder("doge", "Doge", **{**WIDE, "num_key_value_heads": 2}, keep_window_size=7, is_moe=True, num_experts=16, num_experts_per_tok=4,
            max_position_embeddings=64),
    decoder("zaya", "Zaya", tokens(21, WORDS, pad=6), **SMALL, num_key_value_heads=2, head_dim=12, layer_types=["hybrid", "hybrid_sliding"], sliding_window=7,
            moe_intermediate_size=36, num_experts=5, num_experts_per_tok=1, router_hidden_size=20, experts_implementation="eager"),
    text("canine", "Canine", tokens(45, WORDS, pad=7), "eager", hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100,
         max_position_embeddings=64, num_hash_functions=4, num_hash_buckets=64, local_transformer_stride=16),
    text("longformer", "Longformer", also(tokens(45, WORDS, pad=7), global_attention_mask=_first_token(45)), "eager", **WIDE, max_position_embeddings=64,
         attention_window=8),
    text("lilt", "Lilt", also(tokens(19, WORDS, pad=5), bbox=_boxes(19)), "eager", **SMALL, max_position_embeddings=40, max_2d_position_embeddings=128,
         channel_shrink_ratio=2),
    text("xlm", "XLM", also(tokens(39, WORDS, pad=9), langs=lambda _s: torch.tensor([[0], [2]]).expand(-1, 39)), "eager", vocab_size=WORDS, emb_dim=104, n_layers=2,
         n_heads=4, n_langs=3, max_position_embeddings=64),
    text("fsmt", "FSMT", sequence_pair(39, 23, WORDS, pad=8), "eager", src_vocab_size=WORDS, tgt_vocab_size=WORDS, d_model=104, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=212, decoder_ffn_dim=92, max_position_embeddings=64),
    text("pegasus_x", "PegasusX", sequence_pair(37, 11, WORDS, pad=5), "eager", vocab_size=WORDS, d_model=48, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, max_position_embeddings=64, num_global_tokens=3,
         block_size=8),
]
