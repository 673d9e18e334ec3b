"""Models of text: decoders (attention beside and between state spaces, a shared block with adapters, experts of a narrow kind, indexed attention with shared
keys and values, several residual streams); encoders of chains, of pages and of boxes; an encoder-decoder model of documents."""
import torch

from selftest_models.weights import integers

from ...inputs import BATCH, floats, sequence_pair, tokens
from ..texts import SMALL, WORDS, decoder, text


def _chains(seed):
    """Two chains in the first sample, three in the second one, which ends six places earlier (-1)."""
    ids = integers("ids", (BATCH, 37), 30, seed) + 3
    chains = torch.zeros(BATCH, 37, dtype=torch.long)
    chains[0, 17:], chains[1, 9:21], chains[1, 21:31], chains[1, 31:] = 1, 1, 2, -1
    return [{"input_ids": ids, "sequence_id": chains}]


def _page(seed):
    """Words, and the way to each of them through the page: tags and their numbers, five deep, filled up with 20 and 22."""
    tags, numbers = (integers(name, (BATCH, 37, 5), most, seed) for name, most in (("tags", 19), ("numbers", 21)))
    ends = torch.arange(5) > integers("depth", (BATCH, 37, 1), 5, seed)
    return [{**tokens(37, WORDS, pad=9)(seed)[0], "xpath_tags_seq": tags.masked_fill(ends, 20), "xpath_subs_seq": numbers.masked_fill(ends, 22),
             "token_type_ids": (torch.arange(37) >= 11).long().expand(BATCH, -1)}]


def _boxes(seed):
    """Left, top, right and bottom of each word as shares of the page."""
    drawn = floats(corner=(37, 2), size=(37, 2))(seed)[0]
    corner = drawn["corner"].sigmoid() * 0.7
    return torch.cat([corner, corner + drawn["size"].sigmoid() * 0.3], dim=-1)


def _document(seed):
    """Words, their boxes, a picture of the page, the beginning of an answer."""
    return [{**sequence_pair(37, 19, WORDS, pad=9)(seed)[0], **floats(pixel_values=(3, 24, 24))(seed)[0], "bbox": _boxes(seed)}]


ENTRIES = [
    decoder("jamba", "Jamba", **{**SMALL, "num_hidden_layers": 4}, num_key_value_heads=2, num_experts=5, num_experts_per_tok=2, expert_layer_period=2,
            expert_layer_offset=1, attn_layer_period=3, attn_layer_offset=1, use_mamba_kernels=False, mamba_d_state=10, mamba_dt_rank=6,
            mamba_proj_bias=True, experts_implementation="eager"),
    decoder("falcon_h1", "FalconH1", **SMALL, num_key_value_heads=2, mamba_d_ssm=72, mamba_n_heads=6, mamba_n_groups=2, mamba_d_state=10, mamba_chunk_size=16,
            mamba_rms_norm=True, mamba_norm_before_gate=False, mamba_proj_bias=True, attention_bias=True, mlp_bias=True, lm_head_multiplier=0.8,
            embedding_multiplier=1.7, mlp_multipliers=[0.9, 0.6], key_multiplier=0.7, attention_out_multiplier=0.9, attention_in_multiplier=1.2,
            ssm_multipliers=[0.9, 0.8, 1.2, 0.7, 1.1], ssm_in_multiplier=1.3, ssm_out_multiplier=0.8, max_position_embeddings=64),
    decoder("zamba2", "Zamba2", **{**SMALL, "num_hidden_layers": 5}, layers_block_type=["linear_attention", "hybrid", "linear_attention", "hybrid", "hybrid"],
            num_mem_blocks=2, use_shared_attention_adapter=True, adapter_rank=8, use_mem_rope=True, mamba_d_state=10, mamba_ngroups=2, n_mamba_heads=8,
            use_mamba_kernels=False, chunk_size=16, add_bias_linear=True, max_position_embeddings=64),
    decoder("nemotron_h", "NemotronH", vocab_size=WORDS, hidden_size=48, layer_types=["linear_attention", "moe", "full_attention", "mlp", "linear_attention"],
            num_attention_heads=4, num_key_value_heads=2, head_dim=12, sliding_window=7, intermediate_size=100, use_mamba_kernels=False, ssm_state_size=10,
            mamba_num_heads=8, mamba_head_dim=12, n_groups=2, chunk_size=16, mamba_proj_bias=True, n_routed_experts=6, n_shared_experts=1,
            moe_intermediate_size=36, moe_shared_expert_intermediate_size=28, moe_latent_size=24, num_experts_per_tok=2, routed_scaling_factor=2.0, n_group=2,
            topk_group=1, attention_bias=True, mlp_bias=True, max_position_embeddings=64, experts_implementation="eager"),
    decoder("mistral_large4", "MistralLarge4Text", tokens(37, WORDS, pad=9), "eager", "Model", **{**SMALL, "num_hidden_layers": 4}, num_key_value_heads=4,
            moe_intermediate_size=36, n_routed_experts=6, num_experts_per_tok=2, n_group=2, topk_group=1, routed_scaling_factor=2.0, kv_lora_rank=20,
            qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=12, index_topk=9, index_head_dim=12, index_n_heads=4, max_position_embeddings=64,
            indexer_types=["full", "full", "shared", "full"], kv_source_layers=[0, 1, 1, 0], no_rope_layers=[1, 0, 0, 1], experts_implementation="eager"),
    decoder("qwen4_exp", "Qwen4ExpText", tokens(37, WORDS, pad=9), "eager", "Model", **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=2, head_dim=12,
            layer_types=["linear_attention", "indexed_attention", "linear_attention"], linear_key_head_dim=8, linear_value_head_dim=12, linear_num_key_heads=2,
            linear_num_value_heads=4, moe_intermediate_size=36, shared_expert_intermediate_size=28, num_experts=5, num_experts_per_tok=2, hc_count=3,
            hc_lowrank=8, ple_layer_ids=[1, 3], ple_embed_dim=24, ngram_size=3, heads_per_ngram=2, ngram_vocab_size_base=97,
            make_ngram_vocab_size_divisible_by=8, split_ngram_parts=4, indexer_n_heads=4, indexer_kv_heads=1, indexer_head_dim=12, indexer_budget=12,
            indexer_compress_ratio=4, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2], mrope_interleaved=True),
            max_position_embeddings=64, experts_implementation="eager"),
    text("udop", "Udop", _document, "eager", vocab_size=WORDS, d_model=48, d_kv=12, d_ff=100, num_layers=2, num_decoder_layers=2, num_heads=4,
         relative_attention_num_buckets=8, relative_attention_max_distance=32, max_2d_position_embeddings=64, image_size=24, patch_size=6,
         feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    text("bros", "Bros", lambda seed: [{**tokens(37, WORDS, pad=9)(seed)[0], "bbox": _boxes(seed)}], "eager", "SpadeELForTokenClassification",
         **{**SMALL, "hidden_size": 128}, max_position_embeddings=64, n_relations=2),
    text("esmc", "Esmc", _chains, head="ForMaskedLM", vocab_size=33, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100,
         max_position_embeddings=64, attention_bias=True, mlp_bias=True),
    text("markuplm", "MarkupLM", _page, "eager", **SMALL, max_position_embeddings=64, max_xpath_tag_unit_embeddings=21, max_xpath_subs_unit_embeddings=23,
         tag_pad_id=20, subs_pad_id=22, xpath_unit_hidden_size=8, max_depth=5),
]
