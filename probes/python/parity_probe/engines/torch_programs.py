"""Records programs that torch.export and torch.compile make of a model, as ports of it.

    from parity_probe.engines import torch_programs
    torch_programs.record_exported(torch.export.export(model, args), args, "cand.h5")
    torch_programs.record_captured(model, args, "cand.h5")            # the graph that torch.compile hands to inductor
    torch_programs.record_compiled(model, args, "cand.h5")            # what inductor's code computes of it

An exported program is a graph of ATen ops: it is run op by op, and every value is written, under `<module path>` when it is a module's output and
`<module path>/<op>.<n>` otherwise. What a compiled program
computes inside its fused kernels exists nowhere in memory. So there are two recordings of it: its results alone (path "": the model's own), judged in one
stretch, and every value of the graph that the backend was handed, decomposed as inductor decomposes it and run op by op: an error of capture, decomposition or
functionalisation shows in the latter at its module, one of the backend's own kernels in the former alone. Ops of graphs are named in upper case, because the n-th
of them is not the n-th op of the eager model.
"""
import contextlib
import os
import re

from ..errors import Error
from ..version import __version__
from ..writer import Writer
from . import module_paths


def record_exported(program, args, path, kwargs=None, weights=True, config=None):
    """Runs `program` (a torch.export.ExportedProgram, or the file of one) and writes its values to the HDF5 file `path`. Returns its result.
    Raises parity_probe.Error: no exported program, a file that cannot be read or written."""
    import torch
    if isinstance(program, (str, os.PathLike)):
        program = _load(program)
    if not isinstance(program, torch.export.ExportedProgram):
        raise Error(f"{type(program).__name__} is no torch.export.ExportedProgram, nor the file of one: torch.export.export(model, args) makes one")
    with _writer(path, "torch.export", config) as writer, torch.no_grad():
        _weights(writer, program.state_dict if weights else {})
        return _Interpreter(program.module(), writer).run(*args, *(kwargs or {}).values())


def record_captured(model, args, path, kwargs=None, weights=True, config=None):
    """Has torch.compile capture `model`, decomposes the graphs as for inductor, runs them op by op and writes their values to the HDF5 file `path`. Returns the
    result. Where Dynamo breaks the graph, each part is recorded as it is run."""
    import torch
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table
    with _writer(path, "torch.compile, captured", config) as writer, torch.no_grad():
        _weights(writer, dict(model.state_dict()) if weights else {})

        def keep(module, _):
            return make_boxed_func(_Interpreter(module, writer).run)

        torch._dynamo.reset()
        return torch.compile(model, backend=aot_autograd(fw_compiler=keep, decompositions=select_decomp_table()))(*args, **(kwargs or {}))


def record_compiled(model, args, path, kwargs=None, backend="inductor", weights=True, config=None):
    """Compiles `model` by torch.compile with `backend` and writes the results of the compiled code to the HDF5 file `path`. Returns the result."""
    import torch
    with _writer(path, f"torch.compile {backend}", config) as writer, torch.no_grad():
        _weights(writer, dict(model.state_dict()) if weights else {})
        torch._dynamo.reset()
        result = torch.compile(model, backend=backend)(*args, **(kwargs or {}))
        for i, value in enumerate(_tensors(result)):
            writer.write(f"[{i}]" if i else "", value, source="")
        return result


@contextlib.contextmanager
def _writer(path, name, config):
    import torch
    about = {"engine": {"name": name, "torch": torch.__version__}}
    with Writer(path, config=config, model=name, producer=f"parity_probe.engines.torch_programs {__version__}", about=lambda: about) as writer:
        yield writer


def _load(path):
    import torch
    if not os.path.isfile(path):
        raise Error(f"{path}: no such file")
    try:
        return torch.export.load(os.fspath(path))
    except Exception as e:  # zip's, json's, torch's own
        raise Error(f"{path}: is no exported program (torch.export.save writes one): {str(e).splitlines()[0] if str(e) else type(e).__name__}") from None


def _weights(writer, state):
    for name, value in state.items():
        writer.write(name, value, role="weight", source="")


def _tensors(result):
    from torch.utils._pytree import tree_leaves
    return [leaf for leaf in tree_leaves(result) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]


def _module(node):
    """The path of the module in whose call an op was met; "" for the model itself and for what has no record of it."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return re.sub(r"\[(['\"]?)([^\]'\"]+)\1\]", r".\2", re.sub(r"^L\[['\"]\w+['\"]\]\.?", "", path)).lstrip(".")


def _paths(graph):
    """{node's name: [paths]}."""
    nodes = [module_paths.Node(_module(n), getattr(n.target, "_opname", getattr(n.target, "__name__", "op")).upper(), n.name, [i.name for i in n.all_input_nodes], [n.name])
             for n in graph.nodes if n.op == "call_function"]
    output = next(n for n in graph.nodes if n.op == "output")
    return module_paths.paths(nodes, [n.name for n in output.all_input_nodes])


def _Interpreter(module, writer):
    """torch.fx.Interpreter of `module` that writes each value; a class made late, so that this file needs no torch."""
    import torch
    paths = _paths(module.graph)

    class Interpreter(torch.fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if n.op == "placeholder" and isinstance(result, torch.Tensor) and not isinstance(result, torch.nn.Parameter):
                writer.write(n.name, result, role="input", source="")
            if n.op == "call_function" and isinstance(result, torch.Tensor):
                found = paths[n.name]
                if "/" not in found[0] or not getattr(n.target, "is_view", False):  # a view computes nothing
                    for path in found:
                        writer.write(path, result, source="")
            return result

    return Interpreter(module)
