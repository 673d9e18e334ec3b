"""Models of images."""
from ..entry import Entry
from ..inputs import floats

_SMALL = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=100)


def _vision(name, stem, model=None, size=(30, 30), channels=3, **config):
    return Entry(name, "vision", f"transformers:{stem}Config:{model or stem + 'Model'}", config, floats(pixel_values=(channels, *size)))


ENTRIES = [
    _vision("vit", "ViT", **_SMALL, image_size=30, patch_size=6),
]
