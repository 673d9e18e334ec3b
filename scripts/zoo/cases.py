"""Which cases there are: everything follows from names (CRC-32), so a case is the same one on every machine and in every selection."""
import itertools
import zlib
from dataclasses import dataclass

from . import draw
from .benign import CHANGES, COMPANY
from .operators import OPERATORS

PLACES = 2                # of one operator in one model: one in its first half, one in its second
RECORDED = ("modules", "modules", "program", "modules", "blocks", "modules")   # how the port recorded, in turn


@dataclass(frozen=True)
class Fault:
    operator: object
    path: str
    company: str | None   # the benign change that goes with it
    recorded: str

    @property
    def name(self):
        return f"{self.operator.name}@{self.path}"


def number(*words):
    return zlib.crc32(".".join(words).encode())


def _spread(paths, key):
    """PLACES of them, spread over the depth of the model."""
    if len(paths) <= PLACES:
        return list(paths)
    cut = [len(paths) * i // PLACES for i in range(PLACES + 1)]
    return [paths[low + key % (high - low)] for low, high in itertools.pairwise(cut)]


def faults_of(entry, dtype, model):
    """All faults of one entry, in the order in which they are taken: one group of operators after the other, each operator's second place last."""
    rounds, drawn = {}, (f"draw {draw()}",) if draw() else ()
    for operator in OPERATORS.values():
        if dtype not in operator.dtypes:
            continue
        key = number(entry.name, dtype, operator.name, *drawn)
        for turn, path in enumerate(_spread(operator.find(model), key)):
            rounds.setdefault((turn, operator.group), []).append((key, operator, path))
    for members in rounds.values():
        members.sort(key=lambda item: item[0])
    queue = []
    for turn in range(PLACES):
        groups = sorted((g for t, g in rounds if t == turn), key=lambda g: number(entry.name, dtype, g, *drawn))
        for members in itertools.zip_longest(*(rounds[turn, g] for g in groups)):
            queue += [m[1:] for m in members if m]
    start = number(entry.name, dtype, *drawn)
    return [Fault(operator, path, COMPANY[(start + i) % len(COMPANY)], RECORDED[(start // 7 + i) % len(RECORDED)]) for i, (operator, path) in enumerate(queue)]


def benign_of(entry, dtype, model, elsewhere=True):
    """The benign changes that apply, in an order of this entry's own; those that need a process of their own (10 s to start) only with `elsewhere`."""
    found = [c for c in CHANGES.values() if c.applies(entry, model) and (elsewhere or not c.environment)]
    return sorted(found, key=lambda c: number(entry.name, dtype, c.name))
