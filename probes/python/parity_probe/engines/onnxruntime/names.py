"""Values of an ONNX graph -> paths. torch.onnx.export leaves the module of each node in its metadata (the exporter of old in the node's name)."""
import ast
import hashlib
import math

from onnx import TensorProto, numpy_helper

from .. import module_paths

SCOPES = "pkg.torch.onnx.name_scopes"
_FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}


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


def _weights(graph):
    """{initializer: what it is} of weights. The exporter turns a shared weight once for each of its uses, so equal numbers are one weight; of one number alone (a norm's ones)
    there are many."""
    found = {}
    for initializer in graph.initializer:
        if initializer.data_type in _FLOATS and math.prod(initializer.dims) > 1:
            values = numpy_helper.to_array(initializer)
            if (values != values.flat[0]).any():
                found[initializer.name] = (values.shape, hashlib.sha256(values.tobytes()).digest())
    return found


def paths(graph):
    """{value: [paths]} of every value that a node computes, in the graph's order."""
    known = _weights(graph)
    nodes = [module_paths.Node(module_of(n), n.op_type, n.name, list(n.input), list(n.output), frozenset(known[i] for i in n.input if i in known)) for n in graph.node]
    return module_paths.paths(nodes, [o.name for o in graph.output])
