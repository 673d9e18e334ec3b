"""Models of text, of tables and of what is placed in space: recurrence and memories in a decoder, attention by kernels, gates, hierarchies and agents, a table's
columns as tokens, points whose distances alone count."""
import torch

from selftest_models.weights import integers

from ...entry import Entry
from ...inputs import BATCH, also, floats, prompt_mask, tokens


def _ids(length, name="x"):
    return tokens(length, 61, name=name)


def _text(name, model, config, inputs, **more):
    return Entry(name, "language", model, config, inputs, **more)


ENTRIES = [
    _text("block_recurrent", "block_recurrent_transformer_pytorch:BlockRecurrentTransformer",
          dict(num_tokens=61, dim=48, depth=3, dim_head=12, heads=4, max_seq_len=32, block_width=16, recurrent_layers=(2,), num_state_vectors=8, use_flash_attn=False),
          _ids(32), dtypes=("fp32",)),
    _text("gated_loop", "gateloop_transformer:Transformer", dict(num_tokens=61, dim=48, depth=2, dim_head=12, heads=4, use_gate_looped_attn=True,
                                                                     checkpoint_gate_looped_attn=False), _ids(29), dtypes=("fp32",)),
    _text("parallel_decoder", "palm_rlhf_pytorch:PaLM", dict(num_tokens=61, dim=48, depth=3, dim_head=12, heads=4, qk_rmsnorm=True), _ids(29)),
    _text("hierarchical_decoder", "simple_hierarchical_transformer:HierarchicalTransformer",
          dict(num_tokens=61, dim=48, depth=2, seq_len=32, dim_head=12, heads=4, hierarchies=(1, 2), window_sizes=(8, None)), _ids(32, name="ids"), dtypes=("fp32",)),
    _text("random_features", "performer_pytorch:PerformerLM", dict(num_tokens=61, dim=48, depth=2, max_seq_len=64, heads=4, dim_head=12, nb_features=36), _ids(29)),
    _text("memory_xl", "memory_transformer_xl:MemoryTransformerXL", dict(num_tokens=61, dim=48, seq_len=16, depth=3, heads=4, memory_layers=[2, 3], mem_len=16, lmem_len=8),
          _ids(16)),
    _text("bytes_in_patches", "MEGABYTE_pytorch:MEGABYTE", dict(num_tokens=61, dim=(52, 36), depth=(2, 1), max_seq_len=(8, 4), dim_head=12, heads=4), _ids(32, name="ids")),
    _text("shifted_tokens", "token_shift_gpt:TokenShiftGPT", dict(num_tokens=61, dim=64, max_seq_len=32, depth=3), _ids(29), dtypes=("fp32",)),
    _text("recurrent_memory", "recurrent_memory_transformer_pytorch:RecurrentMemoryTransformer",
          dict(num_tokens=61, dim=48, depth=2, num_memory_tokens=5, seq_len=32, dim_head=12, heads=4), _ids(29)),
    _text("sorted_buckets", "sinkhorn_transformer:SinkhornTransformerLM", dict(num_tokens=61, dim=48, depth=2, max_seq_len=32, heads=4, bucket_size=8), _ids(32)),
    _text("columns_as_tokens", "tab_transformer_pytorch:FTTransformer", dict(categories=(7, 5, 11), num_continuous=6, dim=48, depth=2, heads=4, dim_head=12, dim_out=5),
          also(floats(x_numer=(6,)), x_categ=lambda seed: integers("categories", (BATCH, 3), 5, seed))),
    _text("landmarks", "nystrom_attention:Nystromformer", dict(dim=48, depth=2, dim_head=12, heads=4, num_landmarks=8, attn_values_residual_conv_kernel=5),
          also(floats(x=(29, 48)), mask=prompt_mask(29, 5, torch.bool)), dtypes=("fp32",)),
    _text("agent_tokens", "agent_attention_pytorch:AgentTransformer", dict(dim=48, depth=2, num_agent_tokens=7, dim_head=12, heads=4), floats(x=(29, 48))),
    _text("equivariant_graph", "egnn_pytorch:EGNN_Network", dict(depth=2, dim=44, num_tokens=23, num_positions=32, num_nearest_neighbors=6),
          also(floats(coors=(17, 3)), feats=lambda seed: integers("ids", (BATCH, 17), 23, seed))),
]
