"""Inputs of the entries: functions of a seed that return a list of calls. Odd sizes, batch 2."""
import torch

from selftest_models.weights import integers, normal

BATCH = 2


def tokens(length, vocabulary, pad=0, low=3, more=None, name="input_ids"):
    """Token ids, which forward calls `name`; with `pad`, the second sample ends that many tokens earlier and an attention mask says so."""
    def make(seed):
        call = {name: low + integers("ids", (BATCH, length), vocabulary - low, seed)}
        if pad:
            mask = torch.ones(BATCH, length, dtype=torch.long)
            mask[1, length - pad:] = 0
            call["attention_mask"] = mask
        return [{**call, **(more(seed) if more else {})}]
    return make


def steps(lengths, vocabulary):
    """A prompt and further tokens on its cache."""
    def make(seed):
        ids = 3 + integers("ids", (BATCH, sum(lengths)), vocabulary - 3, seed)
        return [{"input_ids": part} for part in ids.split(lengths, dim=1)]
    return make


def sequence_pair(length, target, vocabulary, pad=0):
    """Encoder and decoder ids."""
    return tokens(length, vocabulary, pad, more=lambda seed: {"decoder_input_ids": 3 + integers("decoder ids", (BATCH, target), vocabulary - 3, seed)})


def floats(**shapes):
    """Standard normal tensors; the shapes leave the batch out."""
    return lambda seed: [{name: normal(name, (BATCH, *shape), seed) for name, shape in shapes.items()}]


def also(make, **values):
    """`make`'s calls with further arguments; a function is called with the seed."""
    return lambda seed: [{**call, **{k: v(seed) if callable(v) else v for k, v in values.items()}} for call in make(seed)]


def prompt_mask(length, pad, dtype=torch.long):
    def make(_seed):
        mask = torch.ones(BATCH, length, dtype=dtype)
        mask[1, length - pad:] = 0
        return mask
    return make


def times(*values):
    return lambda _seed: torch.tensor(values)


def image(height, width):
    return floats(pixel_values=(3, height, width))


def pixel_mask(height, width, cut):
    """The second image is `cut` pixels narrower."""
    def make(_seed):
        mask = torch.ones(BATCH, height, width, dtype=torch.long)
        mask[1, :, width - cut:] = 0
        return mask
    return make
