"""The table of model families."""
from .gpt2 import GPT2
from .wan import WAN

FAMILIES = {family.name: family for family in (GPT2, WAN)}
