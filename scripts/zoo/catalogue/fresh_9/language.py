"""Models of text: a decoder with experts of words and of images, an encoder of prompts that mixes by convolutions."""
import torch

from ...inputs import also, tokens
from ..texts import SMALL, WORDS, decoder, text


def _seen(_seed):
    """Which places are an image's: eleven of the first text, seven of the second one."""
    places = torch.arange(37)
    return torch.stack([((places >= 4) & (places < 4 + count)).int() for count in (11, 7)])


ENTRIES = [
    decoder("ernie4_5_vl_moe", "Ernie4_5_VLMoeText", also(tokens(37, WORDS, pad=9), moe_mm_token_type_ids=_seen), "eager", "Model",
            **{**SMALL, "num_hidden_layers": 3, "hidden_size": 64}, num_key_value_heads=2, moe_intermediate_size=[36, 28], moe_k=2, moe_num_experts=5,
            moe_num_shared_experts=1, mlp_layer_types=["dense", "sparse", "sparse"], max_position_embeddings=64, experts_implementation="eager",
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[3, 3, 2])),
    text("sam3_lite_text", "Sam3LiteTextText", tokens(23, WORDS, pad=6), "eager", vocab_size=WORDS, hidden_size=48, intermediate_size=100, projection_dim=40,
         num_hidden_layers=4, num_attention_heads=4, max_position_embeddings=32, repmixer_kernel_size=5),
]
