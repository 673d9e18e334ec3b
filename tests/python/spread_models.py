"""Small models whose weights have the scale of trained ones, recorded and compared on one prompt."""
import numpy as np
import torch
import transformers

import nameless
import parity_probe

IDS = torch.randint(0, 97, (2, 11), generator=torch.Generator().manual_seed(1))


def spread(model):
    """Weights at the scale of trained ones, so that everything shows."""
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            gain = weight.dim() < 2 and ("norm" in name or "ln_" in name) and name.endswith("weight")
            weight.copy_(torch.randn(weight.shape, generator=g) / weight.shape[-1] ** .5 if weight.dim() > 1 else gain + .1 * torch.randn(weight.shape, generator=g))
    return model.eval()


def granite():
    config = transformers.GraniteConfig(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, embedding_multiplier=6.5,
                                        residual_multiplier=.4, logits_scaling=3., attention_multiplier=.3, use_cache=False)
    return spread(transformers.GraniteForCausalLM(config))


def gpt2():
    config = transformers.GPT2Config(n_layer=4, n_embd=48, n_head=4, vocab_size=97, n_positions=32, use_cache=False, bos_token_id=1, eos_token_id=2)
    return spread(transformers.GPT2LMHeadModel(config))


def vae(channels, groups, size):
    """diffusers' AutoencoderKL of two blocks a side. Imported here: most tests of these models need no diffusers."""
    import diffusers
    return spread(diffusers.AutoencoderKL(in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
                                          block_out_channels=channels, latent_channels=4, norm_num_groups=groups, sample_size=size))


def record(model, file):
    return nameless.record(model, file, {"input_ids": IDS})


def of_modules(results):
    """{path: array} of nameless.boundaries without the ops' own."""
    return {path: array for path, _, array in results if not path.startswith("op ")}


def saved(file, values):
    """A port's file of {path: array}."""
    with parity_probe.Writer(file) as writer:
        for path, array in values.items():
            writer.write(path, np.ascontiguousarray(array))
    return file


def judged(reference, candidate, folder, *options):
    """The report and its red rows by path."""
    report, _ = nameless.compare(reference, candidate, folder / "report", *options)
    red = {op["path"]: op for op in report["ops"] if op["verdict"] not in ("pass", "inconclusive")}
    return report, red


class Pictures(torch.nn.Module):
    """Convolutions, then tokens with attention and a head, as detectors have them; `padding`: tokens behind them that are not seen."""
    def __init__(self, width=24, layers=4):
        super().__init__()
        self.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(3 if i == 0 else width, width, 3, padding=1) for i in range(layers))
        self.attention, self.norm = torch.nn.MultiheadAttention(width, 4, batch_first=True), torch.nn.LayerNorm(width)
        self.up, self.down, self.head = torch.nn.Linear(width, 40), torch.nn.Linear(40, width), torch.nn.Linear(width, 7)

    def forward(self, x, padding=0):
        for convolution in self.convolutions:
            x = torch.tanh(.2 * convolution(x))  # of many in a row a ReLU makes the samples alike
        x = torch.nn.functional.pad(x.flatten(2).transpose(1, 2), (0, 0, 0, padding))
        unseen = torch.arange(x.shape[1])[None].expand(len(x), -1) >= x.shape[1] - padding
        x = self.norm(x + self.attention(x, x, x, key_padding_mask=unseen if padding else None, need_weights=False)[0])
        return self.head(x + self.down(torch.nn.functional.gelu(self.up(x))))


def pictures(layers=4):
    return spread(Pictures(layers=layers)), torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(4))


def channels_last(path, array):
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
