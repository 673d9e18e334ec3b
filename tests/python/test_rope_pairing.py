"""Which two channels of a head a rotary embedding turns together: neighbours, as the original Wan and GPT-J have it, or halves, as Llama. A port that takes the other form has its name; one that only
keeps the channels of queries and keys in another order is right."""
import nameless
import parity_probe
import pytest
import torch
import transformers
import transformers.models.llama.modeling_llama as llama
from spread_models import judged, spread
from torch import nn

TOKENS, HEADS, WIDTH = 24, 4, 16
X = torch.randn(2, TOKENS, HEADS * WIDTH, generator=torch.Generator().manual_seed(3))
FREQUENCIES = torch.polar(torch.ones(TOKENS, WIDTH // 2), torch.outer(torch.arange(TOKENS).float(), 1 / 1e4 ** (torch.arange(0, WIDTH, 2) / WIDTH)))[:, None]


def turned(a, b):
    return a * FREQUENCIES.real - b * FREQUENCIES.imag, b * FREQUENCIES.real + a * FREQUENCIES.imag


def complex_pairs(x):  # (batch, tokens, heads, width)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * FREQUENCIES).flatten(3).to(x.dtype)


def written_pairs(x):
    """As diffusers writes it out."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    out = torch.empty_like(x, dtype=torch.float32)
    out[..., 0::2], out[..., 1::2] = turned(a, b)
    return out.to(x.dtype)


def halves(x):
    return torch.cat(turned(*x.float().chunk(2, -1)), -1).to(x.dtype)


def halves_stored_as_pairs(x):
    return torch.stack(turned(*x.float().chunk(2, -1)), -1).flatten(-2).to(x.dtype)


def pairs_stored_as_halves(x):
    return torch.cat(turned(x.float()[..., ::2], x.float()[..., 1::2]), -1).to(x.dtype)


def half_turned(x, apart):
    a, b = (x[..., :WIDTH // 2], x[..., WIDTH // 2:]) if apart == "slices" else x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def cast_twice(apart):
    """As ModernBERT has it: each product takes a cast of its own."""
    cos, sin = (torch.cat([part, part], -1) for part in (FREQUENCIES.real, FREQUENCIES.imag))
    return lambda x: (x.float() * cos + half_turned(x.float(), apart) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, rotate, named=False):
        super().__init__()
        self.rotate, self.named = rotate, named
        self.q, self.k, self.v, self.o = (nn.Linear(HEADS * WIDTH, HEADS * WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (layer(x).view(2, TOKENS, HEADS, WIDTH) for layer in (self.q, self.k, self.v))
        q, k = self.rotate(q), self.rotate(k)
        if self.named:
            q, k = parity_probe.point("turned_q", q), parity_probe.point("turned_k", k)
        y = nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        return self.o(y.transpose(1, 2).flatten(2))


def compared(reference, port, folder, dtype, named):
    files = {}
    for level, rotate in (("op", reference), ("module", port)):
        model = spread(Attention(rotate, named)).to(dtype)
        files[level] = folder / f"{level}.h5"
        with torch.no_grad(), parity_probe.record(model, files[level], level=level):
            model(X.to(dtype))
    return judged(files["op"], files["module"], folder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reference", [complex_pairs, written_pairs])
@pytest.mark.parametrize("port", [halves, halves_stored_as_pairs])
def test_halves_for_neighbours(port, reference, dtype, tmp_path):
    report, _ = compared(reference, port, tmp_path, dtype, named=False)
    first = report["first_divergence"]
    assert first["path"] == "o" and first["diagnosis"].startswith("RoPE pairing"), first


@pytest.mark.parametrize("apart", ["slices", "chunks"])
def test_neighbours_for_halves_that_are_cast_twice(apart, tmp_path):
    report, _ = compared(cast_twice(apart), complex_pairs, tmp_path, torch.bfloat16, named=False)
    first = report["first_divergence"]
    assert first["path"] == "o" and first["diagnosis"].startswith("RoPE pairing"), first


@pytest.mark.parametrize("reference", [complex_pairs, written_pairs])
@pytest.mark.parametrize("port", [halves, halves_stored_as_pairs])
def test_halves_for_neighbours_where_they_are_recorded(port, reference, tmp_path):
    report, _ = compared(reference, port, tmp_path, torch.float32, named=True)
    first = report["first_divergence"]
    assert first["path"] == "turned_q" and first["diagnosis"].startswith("RoPE pairing"), first
    if reference is complex_pairs:  # of a point, too: the op that made its value; a buffer that many ops fill has none
        assert (tmp_path / "report" / "first_divergence.h5").exists(), report["warnings"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reference", [complex_pairs, written_pairs])
def test_another_order_of_the_channels_of_queries_and_keys_is_right(reference, dtype, tmp_path):
    report, red = compared(reference, pairs_stored_as_halves, tmp_path, dtype, named=False)
    assert report["verdict"] == "pass", red


def neighbours_stored_as_halves(q, k, cos, sin, *_, **__):
    def rotated(x):
        c, s = (table[..., :table.shape[-1] // 2].unsqueeze(1) for table in (cos, sin))
        a, b = x[..., ::2], x[..., 1::2]
        return parity_probe.point("turned", torch.cat([a * c - b * s, b * c + a * s], -1))
    return rotated(q), rotated(k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_neighbours_for_halves_stored_as_halves(dtype, tmp_path, monkeypatch):
    def recorded(name):
        config = transformers.LlamaConfig(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=97, use_cache=False)
        model = spread(transformers.LlamaForCausalLM(config)).to(dtype)
        return nameless.record(model, tmp_path / name, {"input_ids": torch.arange(24)[None] % 97})

    plain = llama.apply_rotary_pos_emb
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", lambda *args, **kwargs: tuple(parity_probe.point("turned", x) for x in plain(*args, **kwargs)))
    reference = recorded("reference.h5")
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", neighbours_stored_as_halves)
    report, _ = judged(reference, recorded("port.h5"), tmp_path)
    first = report["first_divergence"]
    assert first["path"] == "turned" and first["diagnosis"].startswith("RoPE pairing"), first
