"""An ONNX model whose values can all be fetched: as it is, or as ONNX Runtime optimised it."""
import contextlib
import os
import tempfile

from ...errors import Error

LEVELS = {"none": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}


def packages():
    """(onnx, onnxruntime). Raises parity_probe.Error when one is missing."""
    try:
        import onnx
        import onnxruntime
    except ImportError as e:
        raise Error(f"{e.name} is not installed: pip install onnx onnxruntime") from None
    return onnx, onnxruntime


def load(path):
    """The ModelProto at `path`, its weights included. Raises parity_probe.Error."""
    onnx, _ = packages()
    if not os.path.isfile(path):
        raise Error(f"{path}: no such file")
    try:
        model = onnx.load(path)
    except Exception as e:  # protobuf's own kinds
        raise Error(f"{path}: is no ONNX model that can be read: {str(e).splitlines()[0] if str(e) else type(e).__name__}") from None
    if not model.graph.node:
        raise Error(f"{path}: is no ONNX model: it has no nodes")
    return model


def session(model, level, providers, threads=0, save_to=None):
    """An InferenceSession for a path or ModelProto. Raises parity_probe.Error with ONNX Runtime's reason."""
    _, runtime = packages()
    options = runtime.SessionOptions()
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, LEVELS[level])
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    if save_to:
        options.optimized_model_filepath = save_to
    with _file(model) as path:
        try:
            return runtime.InferenceSession(path, options, providers=list(providers))
        except Exception as e:
            raise Error(f"{path}: ONNX Runtime cannot run it: {str(e).splitlines()[0]}") from None


@contextlib.contextmanager
def _file(model):
    """A path as it is; a ModelProto as a temporary file."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield _save(model, folder)


def _save(model, folder):
    onnx, _ = packages()
    path = os.path.join(folder, "model.onnx")
    large = sum(len(i.raw_data) for i in model.graph.initializer) > 1 << 30  # one protobuf message ends at 2 GiB
    onnx.save(model, path, **({"save_as_external_data": True, "location": "weights"} if large else {}))
    return path


def optimised(model, level, providers):
    """The ModelProto that ONNX Runtime makes of `model` (a ModelProto): nodes fused, folded and laid out for this machine."""
    with tempfile.TemporaryDirectory() as folder:  # weights in files of their own are looked for beside the file
        target = os.path.join(folder, "optimised.onnx")
        session(_save(model, folder), level, providers, save_to=target)
        return load(target)


def with_all_outputs(model):
    """Adds every node's values to the model's outputs. Returns {value: output's name}: narrow floats that numpy lacks leave as float32, which changes none."""
    onnx, _ = packages()
    graph, out = model.graph, {}
    try:
        kinds = {v.name: v.type.tensor_type.elem_type for v in onnx.shape_inference.infer_shapes(model).graph.value_info if v.type.HasField("tensor_type")}
    except Exception:  # a graph with operators of other domains is run all the same
        kinds = {}
    kinds.update({v.name: v.type.tensor_type.elem_type for v in graph.output})
    known = {o.name for o in graph.output}
    narrow = {onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E5M2}
    for value in [v for node in graph.node for v in node.output if v]:
        name = value
        if kinds.get(value) in narrow:
            name = value + "__parity_float32"
            graph.node.append(onnx.helper.make_node("Cast", [value], [name], to=onnx.TensorProto.FLOAT))
        if name not in known:
            graph.output.append(onnx.ValueInfoProto(name=name))
        out[value] = name
    return out
