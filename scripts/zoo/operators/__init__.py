"""The mutation operators: each finds its places in any model and puts one fault into one of them."""
from . import activations, attention, casts, norms, positions, structure, weights

OPERATORS = {o.name: o for part in (norms, activations, casts, weights, attention, positions, structure) for o in part.OPERATORS}
