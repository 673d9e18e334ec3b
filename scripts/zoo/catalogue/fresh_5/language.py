"""Models of text: decoders (two latent attentions and a shortcut through experts in each layer, indexed attention with several residual streams, values
narrower than keys); encoders; encoder-decoder models with windows and with blocks of attention."""
import torch

from ...inputs import BATCH, also, sequence_pair, tokens
from ..texts import SMALL, WORDS, decoder, text


def _global(length, *places):
    """The tokens that all others see; the second sample has one fewer."""
    def make(_seed):
        mask = torch.zeros(BATCH, length, dtype=torch.long)
        mask[0, list(places)], mask[1, list(places[:-1])] = 1, 1
        return mask
    return make


def _table(seed):
    """A question of seven words and a table of five rows and three columns, two words in each cell: (2, 37) ids, (2, 37, 7) kinds of tokens."""
    call = tokens(37, WORDS, pad=6)(seed)[0]
    kinds, cell = torch.zeros(BATCH, 37, 7, dtype=torch.long), torch.arange(30) // 2
    kinds[:, 7:, 0], kinds[:, 7:, 1], kinds[:, 7:, 2] = 1, 1 + cell % 3, 1 + cell // 3
    kinds[0, 11:13, 3] = 1                                                # the answer before
    kinds[:, 7:, 4], kinds[:, 7:, 5] = 1 + cell // 3, 5 - cell // 3       # ranks in the column, both ways
    kinds[:, 7:, 6] = (cell + torch.tensor([[0], [1]])) % 4               # how the number is related to the question's
    return [{**call, "token_type_ids": kinds * call["attention_mask"][:, :, None]}]


def _second(length, first):
    """The question's `first` words are of the first kind, the passage of the second one."""
    return lambda _seed: (torch.arange(length) >= first).long().expand(BATCH, -1)


ENTRIES = [
    decoder("longcat_flash", "LongcatFlash", vocab_size=WORDS, hidden_size=48, num_layers=2, num_attention_heads=4, ffn_hidden_size=100, q_lora_rank=24,
            kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8, head_dim=8, v_head_dim=12, n_routed_experts=5, zero_expert_num=2, moe_topk=2,
            expert_ffn_hidden_size=36, routed_scaling_factor=2.0, max_position_embeddings=64),
    text("led", "LED", also(sequence_pair(37, 19, WORDS, pad=9), global_attention_mask=_global(37, 0, 13)), "eager", vocab_size=WORDS, d_model=48,
         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92,
         max_encoder_position_embeddings=64, max_decoder_position_embeddings=64, attention_window=[4, 8]),
    text("yoso", "Yoso", tokens(37, WORDS, pad=9), "eager", **SMALL, max_position_embeddings=64, hash_code_len=5, conv_window=5),
    text("tapas", "Tapas", _table, "eager", **SMALL, max_position_embeddings=40, type_vocab_sizes=[3, 7, 7, 2, 7, 7, 5]),
    text("roformer", "RoFormer", tokens(37, WORDS, pad=9), "eager", **SMALL, embedding_size=40, max_position_embeddings=64, rotary_value=True),
    text("bigbird_pegasus", "BigBirdPegasus", sequence_pair(47, 19, WORDS, pad=6), "eager", vocab_size=WORDS, d_model=48, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=100, decoder_ffn_dim=92, max_position_embeddings=64, block_size=4,
         num_random_blocks=1),
    text("gte", "Gte", tokens(37, WORDS, pad=9), head="ForMaskedLM", **SMALL, max_position_embeddings=64),
    decoder("mimo_v2_flash", "MiMoV2Flash", tokens(37, WORDS, pad=9), "eager", **SMALL, num_key_value_heads=2, head_dim=12, v_head_dim=10,
            max_position_embeddings=64, sliding_window=7, layer_types=["full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse"],
            moe_intermediate_size=36, n_routed_experts=5, num_experts_per_tok=2, routed_scaling_factor=1.5, experts_implementation="eager"),
    decoder("hy_v4", "HYV4", tokens(37, WORDS, pad=9), "eager", **SMALL, q_lora_rank=24, kv_lora_rank=20, qk_nope_head_dim=12, qk_rope_head_dim=8,
            v_head_dim=12, max_position_embeddings=64, moe_intermediate_size=36, n_routed_experts=5, num_experts_per_tok=2, index_topk=11,
            index_head_dim=16, index_n_heads=2, hc_mult=2, experts_implementation="eager"),
    text("splinter", "Splinter", also(tokens(37, WORDS, pad=9), token_type_ids=_second(37, 11)), "eager", **SMALL, max_position_embeddings=64,
         type_vocab_size=2),
]
