"""An Operator: one kind of mistake, for any model."""
from dataclasses import dataclass
from typing import Callable

from selftest_models.family import BOTH, DIAGNOSES

WITHOUT_A_PAIR = ("weights: bf16", "padding mask missing")   # names that no pair of the self test has


@dataclass(frozen=True)
class Operator:
    name: str
    group: str               # norm, activation, cast, weight, attention, position, structure
    find: Callable           # find(model) -> paths of the modules it can be put into
    put_in: Callable         # put_in(model, path, patch)
    names: tuple = ()        # what the diagnosis may begin with; (): it has no name of its own
    dtypes: tuple = BOTH

    def __post_init__(self):
        unknown = set(self.names) - set(DIAGNOSES) - set(WITHOUT_A_PAIR)
        if unknown:
            raise ValueError(f"{self.name}: unknown diagnosis {', '.join(sorted(unknown))}")


def at(change):
    """put_in from change(module, patch)."""
    return lambda model, path, patch: change(model.get_submodule(path), patch)


def only(pairs, condition=lambda m: True):
    return [path for path, m in pairs if condition(m)]


def sites(path):
    """The modules that carry a fault put in at `path`: "module", "owner#parameter", "from|into", "parent|child|child"."""
    parts = path.partition("#")[0].split("|")
    return [f"{parts[0]}.{child}".lstrip(".") for child in parts[1:]] if len(parts) == 3 else parts[-1:]
