"""Single ONNX nodes over attributes and odd shapes, by family: one model with all nodes of a family, none reading another's result."""
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
RANDOM = np.random.RandomState(11)


def f(*shape, scale=1.0):
    return (RANDOM.randn(*shape) * scale).astype(np.float32)


def positive(*shape):
    return (RANDOM.rand(*shape) * 3 + .1).astype(np.float32)


def i(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def whole(low, high, *shape, dtype=np.int64):
    return RANDOM.randint(low, high, shape).astype(dtype)


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    inputs: list          # arrays: float ones are inputs of the model, others initializers; None: left out
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    fed: bool = False     # integers, too, are inputs of the model
    stated: bool = False  # floats, too, are initializers


def case(kind, *inputs, outputs=1, fed=False, stated=False, **attributes):
    return Case(kind, list(inputs), attributes, outputs, fed, stated)


def simple(*kinds, of=lambda: f(3, 5, 7)):
    return [case(kind, of()) for kind in kinds]


X, NARROW = f(3, 5, 7), (RANDOM.rand(3, 5) * 1.6 - .8).astype(np.float32)
IMAGE, LINE, VOLUME = f(2, 6, 9, 11), f(2, 4, 13), f(1, 2, 5, 6, 7)
INFINITE = np.array([[1, np.inf, -np.inf], [np.nan, 0, -2]], np.float32)
HALVES = np.array([-2.5, -1.5, -.5, .5, 1.5, 2.5, 3.2], np.float32)
TIES = np.array([[3, 1, 3, 2, 3], [0, 5, 5, -1, 5]], np.float32)
INDEX = i(4, 0, -1, 2)

FAMILIES = {
    "arithmetic": [
        *simple("Neg", "Abs", "Sign", "Exp", "Ceil", "Floor", "Sin", "Cos", "Sinh", "Cosh", "Asinh", "Erf"),
        *simple("Sqrt", "Log", "Reciprocal", of=lambda: positive(4, 3)),
        *simple("Tan", "Asin", "Acos", "Atan", "Atanh", of=lambda: NARROW.copy()),
        case("Acosh", positive(4, 3) + 1), case("Round", HALVES), case("Add", X, f(5, 1)), case("Sub", f(7), X), case("Mul", X, scalar(2.5), stated=False),
        case("Div", X, positive(5, 7)), case("Div", whole(-9, 9, 4, 3), whole(1, 5, 3), fed=True), case("Div", whole(-9, 9, 5), i(-4), fed=True),
        case("Mod", whole(-9, 9, 6), i(4), fed=True), case("Mod", whole(-9, 9, 6), i(-4), fed=True), case("Mod", f(6, scale=5), scalar(1.5), fmod=1),
        case("Mod", whole(-9, 9, 6), i(4), fed=True, fmod=1), case("Pow", positive(3, 4), scalar(2.5)), case("Pow", X, scalar(2.)), case("Pow", X, scalar(3, np.int64)),
        case("Pow", whole(-4, 5, 6), scalar(3, np.int64), fed=True), case("Pow", positive(3, 4), f(4)), case("Sum", X, f(7), f(5, 7)), case("Mean", X, f(7), f(5, 7)),
        case("Max", X, f(7), f(5, 1)), case("Min", X, f(7)), case("Clip", X, scalar(-.5), scalar(.7)), case("Clip", X, None, scalar(.2)), case("Clip", X, scalar(.5), scalar(-.5)),
        case("Equal", whole(0, 3, 9), whole(0, 3, 9), fed=True), case("Less", X, f(5, 7)), case("LessOrEqual", TIES, scalar(3.)), case("Greater", X, f(7)),
        case("GreaterOrEqual", TIES, scalar(3.)), case("IsNaN", INFINITE), case("IsInf", INFINITE), case("IsInf", INFINITE, detect_negative=0),
        case("IsInf", INFINITE, detect_positive=0), case("Where", X[0] > 0, X, f(5, 7), fed=True), case("And", X > 0, X[0] > 0, fed=True),
        case("Or", X > 0, X[0] > 0, fed=True), case("Xor", X > 0, X[0] > 0, fed=True), case("Not", X > 0, fed=True), case("Cast", X * 3, to=TensorProto.INT64),
        case("Cast", X, to=TensorProto.FLOAT16), case("Cast", X, to=TensorProto.DOUBLE), case("Cast", whole(-3, 4, 5), to=TensorProto.BOOL, fed=True),
        case("Cast", whole(-3, 300, 5), to=TensorProto.INT32, fed=True), case("BitwiseAnd", whole(0, 99, 5), whole(0, 99, 5), fed=True),
        case("BitShift", whole(0, 99, 5, dtype=np.uint8), whole(0, 3, 5, dtype=np.uint8), direction="RIGHT", fed=True),
    ],
    "activations": [
        *simple("Relu", "Sigmoid", "Tanh", "Mish", "HardSwish", "Gelu", "Elu", "Celu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Softplus", "Softsign",
                "Softmax", "LogSoftmax", of=lambda: f(3, 5, 7, scale=3)),
        case("Gelu", X, approximate="tanh"), case("Elu", X, alpha=.3), case("Celu", X, alpha=.4), case("Selu", X, alpha=1.2, gamma=.8), case("LeakyRelu", X, alpha=.3),
        case("ThresholdedRelu", X, alpha=.3), case("HardSigmoid", X, alpha=.4, beta=.3), case("PRelu", X, positive(5, 1)), case("Softplus", np.array([-50, 0, 19, 21, 39, 90], np.float32)),
        case("Softmax", X, axis=1), case("Softmax", X, axis=0), case("LogSoftmax", X, axis=-2),
    ],
    "products": [
        case("MatMul", f(3, 5), f(5, 4)), case("MatMul", f(2, 3, 5), f(5, 4)), case("MatMul", f(2, 1, 3, 5), f(4, 5, 6)), case("MatMul", f(5), f(5, 4)), case("MatMul", f(3, 5), f(5)),
        case("Gemm", f(3, 5), f(5, 4)), case("Gemm", f(3, 5), f(4, 5), f(4), transB=1), case("Gemm", f(5, 3), f(4, 5), f(3, 1), transA=1, transB=1, alpha=.5, beta=.25),
        case("Gemm", f(3, 5), f(5, 4), f(1, 4), alpha=.5), case("Gemm", f(3, 5), f(5, 4), alpha=.5), case("Einsum", f(2, 3, 5), f(2, 5, 4), equation="bij,bjk->bik"),
        case("Einsum", f(2, 3, 4, 5), f(2, 6, 4, 5), equation="bqhd,bkhd->bhqk"), case("Einsum", f(4), f(3), equation="i,j->ij"), case("Einsum", f(3, 5), equation="ij->ji"),
    ],
    "convolutions": [
        case("Conv", IMAGE, f(4, 6, 3, 3), f(4)), case("Conv", IMAGE, f(4, 6, 3, 2), pads=[1, 0, 2, 1], strides=[2, 1]), case("Conv", IMAGE, f(6, 2, 3, 3), group=3, dilations=[2, 1]),
        case("Conv", IMAGE, f(6, 1, 3, 3), f(6), group=6, pads=[1, 1, 1, 1]), case("Conv", IMAGE, f(4, 6, 4, 3), auto_pad="SAME_UPPER", strides=[2, 3]),
        case("Conv", IMAGE, f(4, 6, 4, 3), auto_pad="SAME_LOWER", strides=[2, 2]), case("Conv", IMAGE, f(4, 6, 3, 3), auto_pad="VALID"), case("Conv", LINE, f(3, 4, 5), f(3), pads=[2, 2]),
        case("Conv", LINE, f(3, 4, 4), pads=[3, 0]), case("Conv", VOLUME, f(3, 2, 2, 3, 2), f(3), pads=[1, 1, 0, 1, 1, 0]), case("ConvTranspose", IMAGE, f(6, 3, 3, 3), f(3)),
        case("ConvTranspose", IMAGE, f(6, 3, 4, 3), strides=[2, 3], pads=[1, 1, 1, 1]), case("ConvTranspose", IMAGE, f(6, 3, 3, 3), strides=[2, 2], pads=[1, 0, 0, 1]),
        case("ConvTranspose", IMAGE, f(6, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]), case("ConvTranspose", IMAGE, f(6, 2, 3, 3), group=2, dilations=[2, 2]),
        case("ConvTranspose", IMAGE, f(6, 3, 3, 3), strides=[3, 2], output_shape=[25, 22]), case("ConvTranspose", IMAGE, f(6, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
        case("ConvTranspose", LINE, f(4, 3, 5), strides=[2], pads=[2, 1]),
    ],
    "norms": [
        case("LayerNormalization", X, positive(7), f(7)), case("LayerNormalization", X, positive(7), epsilon=.1), case("LayerNormalization", X, positive(5, 7), f(5, 7), axis=1),
        case("LayerNormalization", X, positive(7), f(7), outputs=3), case("LayerNormalization", X, positive(1), axis=-1),
        case("GroupNormalization", IMAGE, positive(6), f(6), num_groups=3), case("GroupNormalization", LINE, positive(4), f(4), num_groups=2, epsilon=.05),
        case("InstanceNormalization", IMAGE, positive(6), f(6)), case("InstanceNormalization", LINE, positive(4), f(4), epsilon=.1),
        case("BatchNormalization", IMAGE, positive(6), f(6), f(6), positive(6)), case("BatchNormalization", f(5, 6), positive(6), f(6), f(6), positive(6), epsilon=.1),
        case("LpNormalization", X, axis=1, p=2), case("LpNormalization", X, axis=-1, p=1),
    ],
    "reductions": [
        *[case(kind, X, i(1)) for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")],
        *[case(kind, X, i(0, -1), keepdims=0) for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd", "ReduceL2")], case("ReduceLogSum", positive(3, 5), i(1)),
        case("ReduceSum", X), case("ReduceMax", X, keepdims=0), case("ReduceSum", X, i(), noop_with_empty_axes=1), case("ReduceSum", whole(-9, 9, 4, 3), i(0), fed=False),
        case("ArgMax", TIES, axis=1), case("ArgMax", TIES, axis=-1, select_last_index=1, keepdims=0), case("ArgMin", TIES, axis=0), case("ArgMin", X, axis=2, keepdims=0),
        case("CumSum", X, scalar(1, np.int64)), case("CumSum", X, scalar(-1, np.int64), exclusive=1), case("CumSum", X, scalar(0, np.int64), reverse=1),
        case("CumSum", X, scalar(2, np.int64), reverse=1, exclusive=1), case("TopK", X, i(3), outputs=2), case("TopK", TIES, i(4), outputs=2, axis=1), case("TopK", X, i(2), outputs=2, axis=0, largest=0),
    ],
    "shapes": [
        case("Reshape", X, i(5, -1)), case("Reshape", X, i(0, 7, 5)), case("Reshape", X, i(-1, 0)[::-1].copy() * 0 + i(0, -1)), case("Flatten", X, axis=2), case("Flatten", X, axis=-1), case("Flatten", X, axis=0),
        case("Transpose", X), case("Transpose", X, perm=[1, 0, 2]), case("Squeeze", f(1, 3, 1, 5), i(2)), case("Squeeze", f(1, 3, 1, 5)), case("Unsqueeze", X, i(-1, 0)), case("Unsqueeze", X, i(3, 1)),
        case("Expand", f(5, 1), i(3, 1, 7)), case("Expand", X, i(1, 1)), case("Tile", f(2, 3), i(2, 3)), case("DepthToSpace", f(2, 8, 3, 5), blocksize=2), case("DepthToSpace", f(2, 8, 3, 5), blocksize=2, mode="CRD"),
        case("SpaceToDepth", f(2, 3, 4, 6), blocksize=2), case("Identity", X), case("Dropout", X),
    ],
    "pieces": [
        case("Concat", X, f(3, 2, 7), axis=1), case("Concat", X, X, axis=-3), case("Split", X, i(2, 4, 1), axis=2, outputs=3), case("Split", X, axis=1, num_outputs=2, outputs=2), case("Split", X, axis=-1, num_outputs=3, outputs=3),
        case("Slice", X, i(1), i(3), i(1)), case("Slice", X, i(-4, 0), i(-1, 9223372036854775807), i(2, 0)), case("Slice", X, i(5, 4), i(-9223372036854775807, 0), i(2, 1), i(-2, -1)), case("Slice", X, i(-1), i(-100), i(2), i(-3)),
        case("Slice", X, i(0), i(100), i(2), i(3)), case("Slice", X, i(1, 2), i(3, 4)), case("Pad", X, i(0, 1, 2, 1, 0, 3)), case("Pad", X, i(1, 2), scalar(4.5), i(-1)), case("Pad", X, i(0, 0, -1, 0, 2, -2), stated=False),
        case("Pad", X, i(0, 1, 2, 1, 0, 3), mode="reflect"), case("Pad", X, i(0, 1, 2, 1, 0, 3), mode="edge"), case("Pad", X, i(1, 2, 2, 0), None, i(1, 2), mode="wrap"), case("Trilu", X), case("Trilu", X, scalar(-1, np.int64), upper=0), case("Trilu", X, scalar(2, np.int64), upper=1),
    ],
    "indexing": [
        case("Gather", X, INDEX[1:3], axis=1), case("Gather", X, i(4, 0, 1).reshape(3, 1), axis=2), case("Gather", X, scalar(-1, np.int64), axis=1), case("Gather", f(9, 4), whole(0, 9, 2, 5)), case("Gather", f(9, 4), INDEX, axis=0),
        case("GatherElements", X, whole(-5, 5, 3, 2, 7), axis=1), case("GatherND", X, whole(0, 3, 4, 2)), case("GatherND", X, whole(-3, 3, 2, 4, 1)), case("GatherND", X, whole(0, 5, 3, 4, 1), batch_dims=1),
        case("ScatterElements", X, np.argsort(f(3, 5, 7), 1)[:, :2], f(3, 2, 7), axis=1), case("ScatterElements", X, whole(0, 5, 3, 6, 7), f(3, 6, 7), axis=1, reduction="add"), case("ScatterElements", X, whole(-5, 5, 3, 2, 7), f(3, 2, 7), axis=1, reduction="max"),
        case("ScatterElements", X, whole(0, 5, 3, 2, 7), f(3, 2, 7), axis=1, reduction="mul"), case("ScatterND", X, i(0, 2).reshape(2, 1), f(2, 5, 7)), case("ScatterND", X, i(0, 1, 2, 4, 0, 1).reshape(3, 2), f(3, 7), reduction="add"),
        case("OneHot", whole(-3, 5, 4), scalar(5, np.int64), np.array([-1, 2], np.float32), stated=True), case("OneHot", whole(0, 3, 2, 4), scalar(3, np.int64), np.array([0, 1], np.float32), axis=1, stated=True),
        case("NonZero", np.maximum(X, 0)), case("Compress", X, np.array([1, 0, 1, 1, 0], bool), axis=1), case("Compress", f(2, 3), np.array([0, 1, 1, 0, 1], bool)),
    ],
    "pooling": [
        case("MaxPool", IMAGE, kernel_shape=[3, 2]), case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), case("MaxPool", IMAGE, kernel_shape=[2, 3], strides=[2, 2], pads=[0, 2, 1, 0]),
        case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 3], ceil_mode=1), case("MaxPool", IMAGE, kernel_shape=[2, 2], dilations=[2, 3]), case("MaxPool", LINE, kernel_shape=[4], strides=[3], auto_pad="SAME_UPPER"),
        case("MaxPool", VOLUME, kernel_shape=[2, 2, 3]), case("AveragePool", IMAGE, kernel_shape=[3, 2]), case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), case("AveragePool", IMAGE, kernel_shape=[3, 2], pads=[0, 1, 2, 0], strides=[2, 1]),
        case("AveragePool", IMAGE, kernel_shape=[3, 2], pads=[0, 1, 2, 0], strides=[2, 1], count_include_pad=1), case("AveragePool", IMAGE, kernel_shape=[2, 3], strides=[2, 3], ceil_mode=1),
        case("AveragePool", LINE, kernel_shape=[4], strides=[3], auto_pad="SAME_LOWER"), case("AveragePool", VOLUME, kernel_shape=[2, 3, 2]), case("GlobalAveragePool", IMAGE), case("GlobalMaxPool", LINE),
    ],
    "resizing": [
        case("Resize", IMAGE, None, np.array([1, 1, 2, 2], np.float32), stated=False), *[case("Resize", IMAGE, None, None, i(2, 6, 13, 7), mode="linear", coordinate_transformation_mode=mode)
                                                                                    for mode in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")],
        *[case("Resize", IMAGE, None, None, i(2, 6, 14, 5), mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=mode) for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
          for mode in ("half_pixel", "asymmetric")],
        case("Resize", IMAGE, None, None, i(2, 6, 13, 7), mode="cubic"), case("Resize", IMAGE, None, None, i(2, 6, 13, 17), mode="cubic", cubic_coeff_a=-.5, coordinate_transformation_mode="align_corners"),
        case("Resize", IMAGE, None, None, i(2, 6, 5, 17), mode="cubic", exclude_outside=1), case("Resize", IMAGE, None, None, i(2, 6, 4, 5), mode="linear", antialias=1), case("Resize", IMAGE, None, None, i(2, 6, 4, 5), mode="cubic", antialias=1, cubic_coeff_a=-.5),
        case("Resize", IMAGE, None, None, i(13, 8), mode="linear", axes=[2, 3]), case("Resize", IMAGE, None, np.array([1, 1, 1.7, .6], np.float32), mode="linear"),
        case("Resize", LINE, None, None, i(2, 4, 29), mode="linear"),
    ],
}


def model(family):
    """The ModelProto and the arrays of its inputs."""
    nodes, inputs, initializers, feed, outputs = [], [], [], {}, []
    for n, c in enumerate(FAMILIES[family]):
        names = []
        for k, array in enumerate(c.inputs):
            if array is None:
                names.append("")
                continue
            name = f"x{n}_{k}"
            names.append(name)
            single = array.ndim == 0 or (c.kind == "Resize" and k > 0)
            if (array.dtype == np.float32 and not c.stated and not single) or (c.fed and not single):
                inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
                feed[name] = array
            else:
                initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        results = [f"y{n}_{k}" for k in range(c.outputs)]
        nodes.append(helper.make_node(c.kind, names, results, f"{n:02}_{c.kind}", **c.attributes))
        for result in results:  # integers and truth values are told by what they become
            nodes.append(helper.make_node("Cast", [result], ["as_float_" + result], f"as_float_{result}", to=TensorProto.FLOAT))
            outputs.append(helper.make_tensor_value_info("as_float_" + result, TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, family, inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return made, feed


def changed(made, place, **attributes):
    """The model with other attributes of one node."""
    wrong = onnx.ModelProto()
    wrong.CopyFrom(made)
    node = next(n for n in wrong.graph.node if n.name.startswith(f"{place:02}_"))
    kept = [a for a in node.attribute if a.name not in attributes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attributes.items())])
    return wrong
