"""Models of text: decoders (delta and latent attention, cycles through two stacks of blocks, bytes in patches of their own length, short convolutions beside
routed experts, hashed attention in reversible layers); an encoder of words and entities; a sparse encoder-decoder model."""
import torch

from selftest_models.weights import integers

from ...entry import Entry
from ...inputs import BATCH, also, sequence_pair, tokens
from ..texts import IDS, SMALL, WORDS, decoder, text

_PART = dict(hidden_size=48, num_attention_heads=4, intermediate_size=100, max_position_embeddings=64)


def _prefix(length, first, second):
    """Tokens that see each other both ways, at the start of each sample."""
    def make(_seed):
        kinds = torch.zeros(BATCH, length, dtype=torch.long)
        kinds[0, :first], kinds[1, :second] = 1, 1
        return kinds
    return make


def _mentions(seed):
    """Three entities, each with the places of the words that mention it (-1 fills up)."""
    places = torch.full((BATCH, 3, 5), -1)
    for i, (start, end) in enumerate(((2, 4), (7, 12), (15, 16))):
        places[0, i, :end - start] = torch.arange(start, end)
        places[1, i, :end - start] = torch.arange(start - 2, end - 2)
    return {"entity_ids": 1 + integers("entities", (BATCH, 3), 22, seed), "entity_attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
            "entity_position_ids": places}


ENTRIES = [
    decoder("kimi_linear", "KimiLinear", tokens(37, WORDS, pad=9), "eager", **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=4, moe_intermediate_size=36,
            kv_lora_rank=20, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=12, num_local_experts=5, num_experts_per_tok=2, linear_head_dim=12,
            linear_num_heads=4, layer_types=["linear_attention", "full_attention", "linear_attention"], max_position_embeddings=64,
            experts_implementation="eager"),
    decoder("hrm_text", "HrmText", also(tokens(37, WORDS, pad=9), token_type_ids=_prefix(37, 11, 7)), **SMALL, head_dim=12, H_cycles=2, L_cycles=2,
            max_position_embeddings=64),
    decoder("blt", "Blt", tokens(39, WORDS), "eager", use_cache=False, max_position_embeddings=64, patching_threshold=3.4, local_attention_window_len=9,
            encoder_hash_byte_group_size=[3, 4], encoder_hash_byte_group_vocab=97, patcher_config=dict(_PART, vocab_size=WORDS, num_hidden_layers=1, sliding_window=9),
            encoder_config=dict(_PART, vocab_size=WORDS, hidden_size_global=104, num_hidden_layers=1),
            decoder_config=dict(_PART, vocab_size=WORDS, hidden_size_global=104, num_hidden_layers=2),
            global_config=dict(_PART, hidden_size=104, num_hidden_layers=2)),
    Entry("inkling_text", "language", "transformers:InklingTextConfig:InklingForCausalLM",
          dict({**IDS, **SMALL}, num_key_value_heads=2, head_dim=12, swa_num_attention_heads=4, swa_num_key_value_heads=4, swa_head_dim=12, sliding_window_size=7,
               d_rel=8, rel_extent=16, log_scaling_n_floor=20, layer_types=["hybrid_sliding", "hybrid"], mlp_layer_types=["dense", "sparse"],
               max_position_embeddings=64, moe_intermediate_size=36, n_routed_experts=5, num_experts_per_tok=2, n_shared_experts=2, route_scale=2.0,
               logits_mup_width_multiplier=2.0, experts_implementation="eager"), tokens(37, WORDS, pad=9), "eager"),
    text("reformer", "Reformer", tokens(48, WORDS, pad=7), "eager", vocab_size=WORDS, attention_head_size=12, num_attention_heads=4, hidden_size=48,
         feed_forward_size=100, attn_layers=["local", "lsh", "local", "lsh"], axial_pos_shape=[6, 8], axial_pos_embds_dim=[16, 32], hash_seed=5,
         local_attn_chunk_length=8, lsh_attn_chunk_length=8, num_buckets=6, num_hashes=2, max_position_embeddings=48, is_decoder=True),
    decoder("step3p7", "Step3p7Text", tokens(37, WORDS, pad=9), head="Model", **SMALL, num_key_value_heads=2, head_dim=12, max_position_embeddings=64,
            layer_types=["full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse"], sliding_window=7, num_sliding_attention_heads=6,
            moe_intermediate_size=36, share_expert_dim=28, n_routed_experts=5, num_local_experts=5, num_experts_per_tok=2, experts_implementation="eager"),
    text("nllb_moe", "NllbMoe", sequence_pair(39, 23, WORDS, pad=8), "eager", tables=True, vocab_size=WORDS, d_model=48, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, max_position_embeddings=64, num_experts=4,
         expert_capacity=64, encoder_sparse_step=2, decoder_sparse_step=2),
    text("luke", "Luke", lambda seed: [{**tokens(19, WORDS, pad=4)(seed)[0], **_mentions(seed)}], "eager", **SMALL, entity_vocab_size=23, entity_emb_size=20,
         max_position_embeddings=40),
]
