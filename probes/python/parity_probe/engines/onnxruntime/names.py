"""Values of an ONNX graph -> paths. torch.onnx.export leaves the module of each node in its metadata (the exporter of old in the node's name)."""
import ast

from .. import module_paths

SCOPES = "pkg.torch.onnx.name_scopes"


def module_of(node):
    """The path of the module in whose call the exporter met `node`; None where nothing says so."""
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            try:
                scopes = [str(s) for s in ast.literal_eval(entry.value)]
            except (ValueError, SyntaxError):
                return None
            return scopes[-2] if len(scopes) > 1 else None  # the last is the op itself
    if node.name.startswith("/"):  # /model/layers.0/self_attn/q_proj/MatMul
        return ".".join(node.name.split("/")[1:-1])
    return None


def paths(graph):
    """{value: [paths]} of every value that a node computes, in the graph's order."""
    nodes = [module_paths.Node(module_of(n), n.op_type, n.name, list(n.input), list(n.output)) for n in graph.node]
    return module_paths.paths(nodes, [o.name for o in graph.output])
