"""Values of a flat graph -> paths, where each node still knows the module in whose call it was met."""
import collections
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Node:
    module: typing.Optional[str]  # path of the innermost module; None: not known
    kind: str                     # the operator
    name: str                     # the node's own name, where no module is known
    inputs: list
    outputs: list                 # names of values, "" for one that is left out
    weights: frozenset = frozenset()  # of the inputs: weights, which tell one call of a module from the next


def inside(module, outer):
    """Is `module` the module `outer` or one of its submodules?"""
    return module is not None and (outer == "" or module == outer or module.startswith(outer + "."))


def outer_modules(module):
    """`a.b.c`, `a.b`, `a`."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def calls(nodes):
    """{module: {index of a node inside: which call}} of modules all of whose weights are used equally often, and more than once: a shared layer's."""
    found, insides = {}, collections.defaultdict(list)
    for i, node in enumerate(nodes):
        for module in outer_modules(node.module):
            insides[module].append(i)
    for module, places in insides.items():
        times = set(collections.Counter(w for i in places for w in nodes[i].weights).values())
        if len(times) != 1 or times == {1}:
            continue
        found[module], used, call = {}, set(), 0
        for i in places:
            if used & nodes[i].weights:
                used, call = set(), call + 1
            used |= nodes[i].weights
            found[module][i] = call
    return found


def module_outputs(nodes, results):
    """{value: [module paths, innermost first]} of values that are the only one which a module's nodes hand to others or to the graph's `results`; of a module that is called
    several times, the only one of each call."""
    called, makers, users = calls(nodes), {}, collections.defaultdict(set)
    for i, node in enumerate(nodes):
        makers.update({value: i for value in node.outputs if value})
        for value in node.inputs:
            users[value].add(i)
    for value in results:
        users[value].add(None)
    handed = collections.defaultdict(lambda: collections.defaultdict(list))
    for value, i in makers.items():
        for module in outer_modules(nodes[i].module):
            call = called.get(module, {})
            if any(user is None or not inside(nodes[user].module, module) or call.get(user) != call.get(i) for user in users[value]):
                handed[module][call.get(i)].append(value)
    out = collections.defaultdict(list)
    for module, by_call in handed.items():
        if all(len(values) == 1 for values in by_call.values()):
            for values in by_call.values():
                out[values[0]].append(module)
    return {value: sorted(modules, key=len, reverse=True) for value, modules in out.items()}


def paths(nodes, results):
    """{value: [paths]} of every value, in the nodes' order: of a module's output its module's path (those of outer modules that hand it on as well; the same for each of its
    calls), of any other
    `<module>/<operator>.<n>`, or the node's name where no module is known."""
    modules, counted, out = module_outputs(nodes, results), collections.Counter(), {}
    for node in nodes:
        place = "" if node.module is None else node.module + "/"
        if node.module is None and node.name:
            single = node.name
        else:
            single = f"{place}{node.kind}.{counted[place + node.kind]}"
            counted[place + node.kind] += 1
        for i, value in enumerate(node.outputs):
            if value:
                out[value] = modules.get(value) or [single + (f"[{i}]" if i else "")]
    return out
