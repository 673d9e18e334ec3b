"""ONNX Runtime's NCHWc: what its convolutions and poolings compute lies in blocks of 8 or 16 channels (the vector's width), the last one filled up, under a name
of its own. Here each such value gets the model's layout and name back. Source: onnxruntime/core/optimizer/nchwc_transformer.cc."""
import re

from . import graph as graphs

DOMAIN = "com.microsoft.nchwc"
MADE_FROM = re.compile(r"(.+)_nchwc(_token_\d+)?")  # a node is named after the value that it first computed; sums and activations are fused into it later


def in_model_layout(original, optimised):
    """{name: value of the graph `optimised` that holds it}, every value that its nodes compute, in their order.

    Adds to `optimised` (a ModelProto) a node for each value that lies in blocks and whose name and channels in the ModelProto `original` can be told; it is then
    under that name. Where they cannot be told it stays as it lies; where the graph itself brings it into the model's layout, that stands for both.
    """
    values = {value: node for node in optimised.graph.node for value in node.output if value}
    channels, name_of = _channels(optimised), _Names(original.graph)
    out, added = {}, []
    for value, node in values.items():
        name = name_of(node) if node.domain == DOMAIN and node.op_type != "ReorderOutput" else None
        if name is None or name not in channels:
            out[value] = value
        elif name not in values:
            out[name] = value + "__parity_nchw"
            added.append(_reordered(value, out[name], channels[name]))
    optimised.graph.node.extend(added)
    return out


def _channels(model):
    """{value: its channels}, as ONNX Runtime inferred the shapes; an optimised graph keeps those of values that it no longer computes."""
    dims = {v.name: v.type.tensor_type.shape.dim for v in [*model.graph.value_info, *model.graph.output] if v.type.HasField("tensor_type")}
    return {name: d[1].dim_value for name, d in dims.items() if len(d) > 1 and d[1].dim_value > 0}


def _reordered(value, name, channels):
    onnx, _ = graphs.packages()
    return onnx.helper.make_node("ReorderOutput", [value], [name], domain=DOMAIN, channels=channels)


class _Names:
    """Of a node in NCHWc: the value of the graph `original` that its result is; None where that cannot be told."""

    def __init__(self, original):
        self.makers = {value: node for node in original.node for value in node.output}
        self.readers = {}
        for node in original.node:
            for value in node.input:
                self.readers.setdefault(value, []).append(node)

    def __call__(self, node):
        made = MADE_FROM.fullmatch(node.name)
        if not made or made[1] not in self.makers:
            return None
        value = made[1]
        for kind in self._fused(node, self.makers[value].op_type):
            readers = self.readers.get(value, [])
            if len(readers) != 1 or readers[0].op_type != kind:
                return None
            value = readers[0].output[0]
        return value

    @staticmethod
    def _fused(node, kind):
        """The operators after the one that names the node: a sum is its fourth input, an activation an attribute (which the name may already be of)."""
        activation = next((a.s.decode() for a in node.attribute if a.name == "activation"), None)
        return ["Add"] * (len(node.input) == 4) + [activation] * (activation not in (None, kind))
