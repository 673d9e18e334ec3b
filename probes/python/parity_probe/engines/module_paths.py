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


def inside(module, outer):
    """Is `module` the module `outer` or one of its submodules?"""
    return module is not None and (outer == "" or module == outer or module.startswith(outer + "."))


def module_outputs(nodes, results):
    """{value: [module paths, innermost first]} of values that are the only one which a module's nodes hand to others or to the graph's `results`."""
    made, users = {}, collections.defaultdict(set)
    for node in nodes:
        made.update({value: node.module for value in node.outputs if value})
        for value in node.inputs:
            users[value].add(node.module)
    for value in results:
        users[value].add(None)
    handed = collections.defaultdict(list)
    for value, module in made.items():
        while module:  # `a.b.c`, `a.b`, `a`
            if any(not inside(user, module) for user in users[value]):
                handed[module].append(value)
            module = module.rpartition(".")[0]
    out = collections.defaultdict(list)
    for module, values in handed.items():
        if len(values) == 1:
            out[values[0]].append(module)
    return {value: sorted(modules, key=len, reverse=True) for value, modules in out.items()}


def paths(nodes, results):
    """{value: [paths]} of every value, in the nodes' order: of a module's output its module's path (those of outer modules that hand it on as well), of any other
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
