"""The table of model families."""
from .gpt2 import GPT2
from .gpt_oss import GPT_OSS
from .qwen3 import QWEN3
from .umt5 import UMT5
from .wan import WAN
from .wan_vae import WAN_VAE

FAMILIES = {family.name: family for family in (GPT2, GPT_OSS, QWEN3, UMT5, WAN, WAN_VAE)}
