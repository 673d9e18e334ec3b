"""Models of text, of series in time and of proteins: decoders, one that reads an encoder's states, an encoder and a decoder of other models, a reader of
drafted words, a forecaster of quantiles, a folded chain."""
from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask, sequence_pair, tokens
from ..texts import SMALL, WORDS, decoder, text


def _model(name, stem, head, inputs, attention="eager", batch=True, **config):
    return Entry(name, "language", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _lengths(seed):
    """A series of 43 moments and a longer one of 61."""
    return [{"past_values": [normal("first", (43,), seed), 3 + 2 * normal("second", (61,), seed)]}]


def _chain(seed):
    """A chain of 13 and one of 10 residues, by the numbers of amino acids."""
    return [{"input_ids": integers("chain", (BATCH, 13), 20, seed), "attention_mask": prompt_mask(13, 3)(seed), "num_recycles": 0}]


ENTRIES = [
    decoder("minimax_m3_vl", "MiniMaxM3VLText", tokens(37, WORDS, pad=9), "eager", "Model", **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=2,
            head_dim=12, rotary_dim=6, layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
            mlp_layer_types=["dense", "sparse", "sparse"], num_local_experts=5, num_experts_per_tok=2, dense_intermediate_size=92,
            shared_intermediate_size=28, index_n_heads=2, index_head_dim=12, index_block_size=5, index_topk_blocks=3, max_position_embeddings=64,
            experts_implementation="eager"),
    decoder("granitemoe_swa", "GraniteMoeSWA", tokens(37, WORDS, pad=9), "eager", **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=2,
            num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=36, sliding_window=7, layer_rope_theta=[0, 10000.0, 5000.0],
            attention_multiplier=0.3, embedding_multiplier=1.3, residual_multiplier=0.8, logits_scaling=1.5, max_position_embeddings=64,
            experts_implementation="eager"),
    text("trocr", "TrOCR", also(tokens(23, WORDS, pad=5), encoder_hidden_states=lambda seed: normal("lines", (BATCH, 17, 40), seed),
                                encoder_attention_mask=prompt_mask(17, 4)), "eager", "ForCausalLM", vocab_size=WORDS, d_model=48, decoder_layers=3,
         decoder_attention_heads=4, decoder_ffn_dim=100, max_position_embeddings=64, cross_attention_hidden_size=40, use_cache=False,
         tie_word_embeddings=False),
    _model("encoder_decoder", "EncoderDecoder", "Model", sequence_pair(29, 19, WORDS, pad=6),
           encoder=dict(SMALL, model_type="mpnet", max_position_embeddings=64),
           decoder=dict(SMALL, model_type="roformer", hidden_size=40, max_position_embeddings=64, is_decoder=True, add_cross_attention=True, use_cache=False)),
    _model("muse_glimmer_assistant", "MuseGlimmerAssistant", "Model",
           also(floats(noise_embeds=(7, 48), context_hidden_states=(23, 96)), attention_mask=prompt_mask(30, 0)), "sdpa", hidden_size=48,
           intermediate_size=100, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=12, sliding_window=9, block_size=7,
           layer_types=["sliding_attention", "full_attention", "sliding_attention"], target_layer_ids=[1, 3], mask_token_id=60,
           max_position_embeddings=64),
    _model("timesfm2_5", "TimesFm2_5", "ModelForPrediction", _lengths, batch=False, patch_length=8, context_length=56, horizon_length=16,
           num_hidden_layers=3, hidden_size=48, intermediate_size=100, head_dim=12, num_attention_heads=4, num_key_value_heads=4,
           quantiles=[0.1, 0.5, 0.9], decode_index=1, output_quantile_len=32, max_position_embeddings=64),
    text("esmfold", "Esm", _chain, "eager", "ForProteinFolding", vocab_size=33, mask_token_id=32, pad_token_id=1, hidden_size=48, num_hidden_layers=2,
         num_attention_heads=4, intermediate_size=100, max_position_embeddings=64, position_embedding_type="rotary", token_dropout=True,
         is_folding_model=True,
         esmfold_config=dict(fp16_esm=False, lddt_head_hid_dim=28,
                             trunk=dict(num_blocks=2, sequence_state_dim=48, pairwise_state_dim=24, sequence_head_width=12, pairwise_head_width=12,
                                        position_bins=8, max_recycles=1, chunk_size=None,
                                        structure_module=dict(sequence_dim=48, pairwise_dim=24, ipa_dim=8, resnet_dim=28, num_heads_ipa=4, num_qk_points=3,
                                                              num_v_points=4, num_blocks=2)))),
]
