"""Running calls of modules and functions: where in the model they are, and how their functions and primitives are numbered."""
import itertools

_serials = itertools.count()


class Call:
    """One call: of a module (`path`) or of a function (`name`; its path is numbered within the module call around it, when it is first asked for)."""

    def __init__(self, path=None, name=None, owner=None, module=None, linen=None):
        self.serial, self.name, self.module, self.linen = next(_serials), name, module, linen
        self.owner = self if owner is None or name is None else owner  # the module call that numbers what happens inside
        self._path, self._counts = path, {}

    @property
    def path(self):
        if self._path is None:
            self._path = self.owner.step(self.name)
        return self._path

    def step(self, name):
        """Path of the next function or primitive `name` in this module call."""
        n = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{self._path}/{name}.{n}"


class Instances:
    """The calls of one run of a traced program. A trace knows calls by serial, and one trace may serve several calls (a jitted function inside), so each chain
    of serials is a call; what is not a serial in it only tells such calls apart."""

    def __init__(self, base, known):
        self._base, self._known, self._found = base, known, {(): base}

    def call(self, chain):
        """The Call at the end of `chain`; the running call outside of the program when it is empty."""
        if chain not in self._found:
            outer, origin = self.call(chain[:-1]), self._known.get(chain[-1])
            self._found[chain] = outer if origin is None else Call(name=origin.name, owner=outer.owner) if origin.name is not None else Call(path=origin.path)
        return self._found[chain]


def join(*parts):
    """Module path from its parts, empty ones left out."""
    return ".".join(str(p) for p in parts if str(p))
