"""Attention on rotary-embedding-torch, called for a prompt and then for what follows it."""
import torch
from rotary_embedding_torch import RotaryEmbedding


class Attention(torch.nn.Module):
    """x (b, n, 48) at positions offset … offset + n - 1 -> (b, n, 48); 3 heads."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.rotary = torch.nn.Linear(48, 144), torch.nn.Linear(48, 48), RotaryEmbedding(16)

    def forward(self, x, offset):
        q, k, v = (t.unflatten(-1, (3, 16)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        q, k = self.rotary.rotate_queries_or_keys(q, offset=offset), self.rotary.rotate_queries_or_keys(k)
        return self.out((q @ k.mT / 4).softmax(-1).matmul(v).transpose(1, 2).flatten(2))


def build():
    return Attention(), [{"x": torch.randn(2, 9, 48), "offset": offset} for offset in (0, 5)]
