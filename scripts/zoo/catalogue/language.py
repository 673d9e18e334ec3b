"""Decoders. Wide ones have some four times the elements: what is judged by direction depends on how many there are."""
from ..entry import Entry
from ..inputs import steps, tokens

_V = 61
_SMALL = dict(vocab_size=_V, num_hidden_layers=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
_EXPERTS = dict(num_experts_per_tok=2, experts_implementation="eager")


def _decoder(name, stem, inputs=None, attention="sdpa", **config):
    """A prompt and a second call on its cache; or one call with `inputs`."""
    lengths = (37, 6) if config.get("hidden_size", 0) > 48 else (19, 5)
    return Entry(name, "language", f"transformers:{stem}Config:{stem}ForCausalLM", {**_SMALL, **config}, inputs or steps(lengths, _V), attention,
                 cached=inputs is None)


_MULTI = dict(hidden_size=48, intermediate_size=100, num_attention_heads=4)
_GROUPED = dict(_MULTI, num_key_value_heads=2)
_PADDED = tokens(21, _V, pad=6)
_WIDE = dict(hidden_size=104, intermediate_size=212, num_attention_heads=4)
_WIDE_GROUPED = dict(_WIDE, num_key_value_heads=2)
_WIDE_PADDED = tokens(45, _V, pad=11)
ENTRIES = [
    _decoder("llama", "Llama", **_WIDE_GROUPED),
    _decoder("qwen2", "Qwen2", **_WIDE_GROUPED),
    _decoder("qwen3", "Qwen3", **_GROUPED, head_dim=10),
    _decoder("qwen3_moe", "Qwen3Moe", **_GROUPED, head_dim=10, num_experts=5, moe_intermediate_size=36, **_EXPERTS),
    _decoder("mistral", "Mistral", _WIDE_PADDED, **_WIDE_GROUPED, sliding_window=7),
    _decoder("mixtral", "Mixtral", **_WIDE_GROUPED, num_local_experts=4, **_EXPERTS),
    _decoder("olmo2", "Olmo2", _WIDE_PADDED, **_WIDE_GROUPED),
    _decoder("granite", "Granite", **_WIDE_GROUPED, embedding_multiplier=1.5, residual_multiplier=0.7, attention_multiplier=0.3, logits_scaling=2.0),
    _decoder("starcoder2", "Starcoder2", attention="eager", **_GROUPED),
    _decoder("nemotron", "Nemotron", **_WIDE_GROUPED),
    _decoder("smollm3", "SmolLM3", attention="eager", **_WIDE_GROUPED),
    _decoder("opt", "OPT", _WIDE_PADDED, hidden_size=104, ffn_dim=212, num_attention_heads=4, word_embed_proj_dim=104),
    _decoder("gpt_neox", "GPTNeoX", **_WIDE),
    _decoder("gptj", "GPTJ", attention="eager", n_embd=104, n_head=4, n_layer=2, n_positions=64, rotary_dim=8),
    _decoder("bloom", "Bloom", _PADDED, "eager", hidden_size=48, n_head=4, n_layer=2),
    _decoder("falcon", "Falcon", hidden_size=48, num_attention_heads=4, new_decoder_architecture=True, num_kv_heads=2, alibi=False, bias=True),
    _decoder("stablelm", "StableLm", **_MULTI, num_key_value_heads=4, use_qkv_bias=True,
             rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}),
    _decoder("mpt", "Mpt", _PADDED, "eager", d_model=48, n_heads=4, n_layers=2, max_seq_len=64),
]
