"""Models of text and of series in time: forecasters of patches, by mixing, by sparse attention and by quantiles; a policy over states and rewards; decoders
(latent attention in windows and by an index, experts of a narrow kind); an encoder of text and patches; words about proteins; answers from documents."""
import torch

from selftest_models.weights import integers, normal

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask, tokens
from ..texts import SMALL, WORDS, decoder, text


def _model(name, stem, head, inputs, attention="eager", batch=True, **config):
    return Entry(name, "language", f"transformers:{stem}Config:{stem}{head}", config, inputs, attention, batch=batch)


def _seen(length, channels, share=5):
    """Which moments of each channel were observed: about four in five."""
    return lambda seed: (integers("seen", (BATCH, length, channels), share, seed) > 0).float()


def _numbers(name, most, *shape):
    return lambda seed: integers(name, (BATCH, *shape), most, seed)


def _lengths(seed):
    """A series of 43 moments and a longer one of 61."""
    return [{"past_values": [normal("first", (43,), seed), 3 + 2 * normal("second", (61,), seed)], "freq": [0, 2], "return_forecast_on_context": True}]


def _pages(seed):
    """Three patches of a page (6) in each text, and in the second one the sign of a document (5)."""
    call = tokens(29, WORDS, pad=7, low=7)(seed)[0]
    call["input_ids"][:, 2:5] = 6
    call["input_ids"][1, 12] = 5
    return [{**call, "pixel_values": normal("patches", (2 * 3, 3 * 6 * 6), seed)}]


def _protein(seed):
    """A question about a chain of 23 and one of 17 residues."""
    chain = 5 + integers("chain", (BATCH, 23), 55, seed)
    mask = prompt_mask(23, 6)(seed)
    return [{**tokens(19, WORDS, pad=5)(seed)[0], "protein_input_ids": torch.where(mask > 0, chain, 1), "protein_attention_mask": mask}]


def _found(seed):
    """A question, three documents found for it and how well they fit, the beginning of an answer."""
    documents = tokens(31, WORDS, pad=8)
    context = [documents(seed + n)[0] for n in range(3)]
    ids, mask = (torch.stack([c[key] for c in context], dim=1).flatten(0, 1) for key in ("input_ids", "attention_mask"))
    return [{"input_ids": 3 + integers("question", (BATCH, 11), WORDS - 3, seed), "context_input_ids": ids, "context_attention_mask": mask,
             "doc_scores": normal("scores", (BATCH, 3), seed), "decoder_input_ids": 3 + integers("answer", (BATCH, 13), WORDS - 3, seed)}]


ENTRIES = [
    _model("patchtst", "PatchTST", "ForPrediction", also(floats(past_values=(48, 3)), past_observed_mask=_seen(48, 3)), num_input_channels=3,
           context_length=48, patch_length=8, patch_stride=4, num_hidden_layers=2, d_model=48, num_attention_heads=4, ffn_dim=100, channel_attention=True,
           use_cls_token=True, pooling_type=None, do_mask_input=False, prediction_length=7, loss="nll"),
    _model("patchtsmixer", "PatchTSMixer", "ForPrediction", also(floats(past_values=(48, 3)), observed_mask=_seen(48, 3)), num_input_channels=3,
           context_length=48, patch_length=8, patch_stride=4, d_model=48, num_layers=2, mode="mix_channel", self_attn=True, self_attn_heads=4,
           use_positional_encoding=True, prediction_length=7, loss="nll", distribution_output="normal"),
    _model("informer", "Informer", "ForPrediction",
           also(floats(past_values=(29,), past_time_features=(29, 2), future_values=(7,), future_time_features=(7, 2), static_real_features=(1,)),
                past_observed_mask=lambda seed: _seen(29, 1)(seed)[..., 0], static_categorical_features=_numbers("series", 5, 1)), batch=False,
           prediction_length=7, context_length=24, lags_sequence=[1, 2, 3, 5], num_time_features=2, num_static_real_features=1,
           num_static_categorical_features=1, cardinality=[5], embedding_dimension=[3], d_model=48, encoder_layers=2, decoder_layers=2,
           encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, sampling_factor=2),
    _model("timesfm", "TimesFm", "ModelForPrediction", _lengths, batch=False, patch_length=8, context_length=56, horizon_length=13, num_hidden_layers=2,
           hidden_size=48, intermediate_size=100, head_dim=12, num_attention_heads=4, quantiles=[0.1, 0.5, 0.9], use_positional_embedding=True),
    _model("decision_transformer", "DecisionTransformer", "Model",
           also(floats(states=(11, 7), actions=(11, 3), rewards=(11, 1), returns_to_go=(11, 1)), timesteps=_numbers("moments", 40, 11),
                attention_mask=prompt_mask(11, 4)), "sdpa", state_dim=7, act_dim=3, hidden_size=48, max_ep_len=40, n_positions=64, n_layer=2, n_head=4),
    decoder("dots3_note", "Dots3NoteText", tokens(37, WORDS, pad=9), "eager", "Model", **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=4,
            layer_types=["indexed_attention", "sliding_attention", "indexed_attention"], mlp_layer_types=["dense", "sparse", "sparse"], sliding_window=7,
            q_lora_rank=24, kv_lora_rank=20, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=12, head_dim=20, index_topk=9, index_head_dim=12,
            index_n_heads=4, n_routed_experts=6, num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=36,
            moe_shared_expert_intermediate_size=28, routed_scaling_factor=2.0, swa_num_attention_heads=2, swa_num_key_value_heads=2, swa_q_lora_rank=16,
            swa_kv_lora_rank=16, swa_head_dim=24, swa_qk_nope_head_dim=12, swa_v_head_dim=16, max_position_embeddings=64, experts_implementation="eager"),
    decoder("muse_spark", "MuseSparkText", tokens(37, WORDS, pad=9), "eager", "Model", **{**SMALL, "num_hidden_layers": 3}, num_key_value_heads=2,
            head_dim=12, layer_types=["sliding_attention", "full_attention", "sliding_attention"], layer_rope_theta=[10000.0, 0, 10000.0], sliding_window=7,
            mlp_layer_types=["dense", "sparse", "sparse"], moe_intermediate_size=36, moe_hidden_size=28, num_local_experts=6, num_experts_per_tok=2,
            routed_scaling_factor=2.0, max_position_embeddings=64, experts_implementation="eager"),
    _model("neomme", "NeoMME", "ForMaskedLM", _pages, batch=False, vocab_size=WORDS, embedding_rank=20, hidden_size=48, intermediate_size=100,
           num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=5, max_position_embeddings=64, patch_size=6,
           embedding_dim=28, layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"]),
    text("evolla", "Evolla", _protein, "eager", "ForProteinText2Text", vocab_size=WORDS, hidden_size=48, intermediate_size=100, num_hidden_layers=3,
         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, aligner_ffn_mult=2, aligner_num_add_layers=2, resampler_depth=1,
         resampler_dim_head=12, resampler_heads=4, resampler_num_latents=5, resampler_ff_mult=2, bos_token_id=1, eos_token_id=2,
         protein_encoder_config=dict(vocab_size=60, hidden_size=40, num_hidden_layers=2, num_attention_heads=4, intermediate_size=92,
                                     max_position_embeddings=64)),
    _model("rag", "Rag", "TokenForGeneration", _found, batch=False, vocab_size=WORDS, n_docs=3, do_marginalize=True, use_cache=False, bos_token_id=0,
           pad_token_id=1, eos_token_id=2, question_encoder=dict(SMALL, model_type="mpnet", num_hidden_layers=1, max_position_embeddings=64),
           generator=dict(model_type="bart", vocab_size=WORDS, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                          decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, max_position_embeddings=64)),
]
