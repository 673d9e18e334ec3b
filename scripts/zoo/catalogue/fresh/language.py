"""Models of text: decoders with caches, recurrent and linear attention, routed experts; encoders; encoder-decoder models."""
from ...entry import Entry
from ...inputs import floats, sequence_pair, steps, tokens

_V = 61
_IDS = dict(vocab_size=_V, pad_token_id=0, bos_token_id=1, eos_token_id=2)
_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)
_WIDE = dict(hidden_size=104, num_hidden_layers=2, num_attention_heads=4, intermediate_size=212)
_EXPERTS = dict(num_experts_per_tok=2, experts_implementation="eager")
_HYBRID = dict(num_key_value_heads=2, head_dim=12, layer_types=["linear_attention", "full_attention"])
_STEPS = steps((37, 6), _V)
_PADDED = tokens(45, _V, pad=11)


def _text(name, stem, inputs, attention="sdpa", head="Model", cached=False, tables=False, **config):
    return Entry(name, "language", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, cached, tables=tables)


def _decoder(name, stem, inputs, attention="sdpa", **config):
    """_STEPS are a prompt and a second call on its cache."""
    return _text(name, stem, inputs, attention, "ForCausalLM", inputs is _STEPS, **_IDS, **config)


ENTRIES = [
    _decoder("gpt_neo", "GPTNeo", _PADDED, "eager", hidden_size=104, num_layers=2, num_heads=4, intermediate_size=212, max_position_embeddings=64,
             attention_types=[[["global", "local"], 1]], window_size=7),
    _decoder("codegen", "CodeGen", _STEPS, "eager", n_embd=104, n_head=4, n_layer=2, n_positions=64, n_ctx=64, rotary_dim=8),
    _decoder("persimmon", "Persimmon", _STEPS, **{**_WIDE, "hidden_size": 96}, max_position_embeddings=64),
    _decoder("rwkv", "Rwkv", tokens(19, _V), "eager", hidden_size=48, attention_hidden_size=48, num_hidden_layers=2, intermediate_size=100,
             context_length=32),
    _decoder("olmoe", "Olmoe", _PADDED, **_WIDE, num_key_value_heads=2, num_experts=5, max_position_embeddings=64, **_EXPERTS),
    _decoder("lfm2", "Lfm2", _STEPS, **_WIDE, num_key_value_heads=2, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
    _decoder("qwen3_next", "Qwen3Next", _STEPS, **_SMALL, **_HYBRID, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=12,
             linear_value_head_dim=10, num_experts=5, moe_intermediate_size=36, shared_expert_intermediate_size=28, **_EXPERTS),
    _decoder("minimax", "MiniMax", tokens(21, _V), **_SMALL, **_HYBRID, block_size=8, num_local_experts=4, **_EXPERTS),
    _text("longt5", "LongT5", sequence_pair(39, 11, _V, pad=5), "eager", vocab_size=_V, d_model=48, d_kv=12, d_ff=100, num_layers=2, num_heads=4,
          local_radius=5, relative_attention_num_buckets=8, relative_attention_max_distance=12, feed_forward_proj="gated-gelu"),
    _text("m2m_100", "M2M100", sequence_pair(39, 23, _V, pad=8), **_IDS, d_model=104, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
          decoder_attention_heads=4, encoder_ffn_dim=212, decoder_ffn_dim=92, max_position_embeddings=40, decoder_start_token_id=2, tables=True),
    _text("xlnet", "XLNet", tokens(19, _V, pad=5), "eager", vocab_size=_V, d_model=48, n_layer=2, n_head=4, d_inner=100),
    _text("funnel", "Funnel", tokens(21, _V, pad=5), "eager", vocab_size=_V, block_sizes=[1, 1], num_decoder_layers=1, d_model=48, n_head=4, d_head=12,
          d_inner=100),
    _text("perceiver", "Perceiver", floats(inputs=(31, 26)), "eager", num_latents=13, d_latents=48, d_model=26, num_blocks=2,
          num_self_attends_per_block=1, num_self_attention_heads=4, num_cross_attention_heads=2),
]
