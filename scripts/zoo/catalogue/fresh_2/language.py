"""Models of text: decoders with caches, matrix memories, routed experts in attention; encoders with sparse and rotary attention; encoder-decoder models."""
from ...inputs import sequence_pair, tokens
from ..texts import SMALL, WORDS, WIDE, decoder, text

ENTRIES = [
    decoder("gpt_neox_japanese", "GPTNeoXJapanese", attention="eager", hidden_size=104, num_hidden_layers=2, num_attention_heads=4,
            intermediate_multiple_size=2, max_position_embeddings=64),
    decoder("ctrl", "CTRL", tokens(45, WORDS, pad=11), "eager", "LMHeadModel", n_embd=104, n_layer=2, n_head=4, dff=212, n_positions=64),
    decoder("gpt_bigcode", "GPTBigCode", n_embd=104, n_layer=2, n_head=4, n_positions=64),
    decoder("dbrx", "Dbrx", d_model=48, n_heads=4, n_layers=2, max_seq_len=64, attn_config=dict(kv_n_heads=2, clip_qkv=3.0, rope_theta=10000.0),
            ffn_config=dict(hidden_size=48, ffn_hidden_size=36, moe_num_experts=5, moe_top_k=2)),
    decoder("jetmoe", "JetMoe", tokens(21, WORDS, pad=6), hidden_size=48, num_hidden_layers=2, num_key_value_heads=2, kv_channels=12, intermediate_size=52,
            num_local_experts=5, num_experts_per_tok=2, max_position_embeddings=64),
    decoder("xlstm", "xLSTM", tokens(19, WORDS), "eager", hidden_size=128, num_hidden_layers=2, num_blocks=2, num_heads=4, chunk_size=8,
            ffn_round_up_to_multiple_of=4),
    text("big_bird", "BigBird", tokens(45, WORDS, pad=7), "eager", **WIDE, max_position_embeddings=64, block_size=4, num_random_blocks=1),
    text("mpnet", "MPNet", tokens(39, WORDS, pad=9), "eager", **WIDE, max_position_embeddings=64),
    text("esm", "Esm", tokens(19, WORDS, pad=5), **SMALL, pad_token_id=1, mask_token_id=4, position_embedding_type="rotary", emb_layer_norm_before=True,
         token_dropout=True),
    text("prophetnet", "ProphetNet", sequence_pair(19, 11, WORDS, pad=5), "eager", vocab_size=WORDS, hidden_size=48, encoder_ffn_dim=100, num_encoder_layers=2,
         num_encoder_attention_heads=4, decoder_ffn_dim=92, num_decoder_layers=2, num_decoder_attention_heads=4, max_position_embeddings=40, num_buckets=8,
         relative_max_distance=12),
    text("switch_transformers", "SwitchTransformers", sequence_pair(21, 11, WORDS, pad=5), "eager", vocab_size=WORDS, d_model=48, d_kv=12, d_ff=100, num_layers=2,
         num_decoder_layers=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, num_heads=4, num_experts=4, expert_capacity=9,
         relative_attention_num_buckets=8, relative_attention_max_distance=12),
]
