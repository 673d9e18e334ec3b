"""A ggml tensor as a numpy array: ggml counts axes from the innermost (`ne`), numpy from the outermost."""
import ctypes

import numpy as np

# ggml's type names; quantised blocks are no array of numbers
DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "bf16": np.uint16}
VIEWS = {"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"}  # ops that compute nothing


def array(api, tensor, batch=False):
    """(numpy array with the tensor's shape in numpy's order, dtype kept; bf16 widened to float32, which changes no value) or (None, type name) of a quantised
    tensor. Reads it from whichever device it lies on, views included. `batch`: with a leading axis of one, and an axis for a single token too."""
    t = tensor.contents
    name = api.ggml_type_name(t.type).decode()
    dtype = DTYPES.get(name)
    if dtype is None:
        return None, name
    raw = np.empty(api.ggml_nbytes(tensor), np.uint8)  # of a view with gaps: from its first byte to its last
    if raw.size:
        api.ggml_backend_tensor_get(tensor, raw.ctypes.data_as(ctypes.c_void_p), 0, raw.size)
    dims = max(api.ggml_n_dims(tensor), 2 if batch else 1)
    shape, strides = list(t.ne)[:dims][::-1], list(t.nb)[:dims][::-1]
    values = np.ndarray(shape, dtype, raw, 0, strides) if raw.size else np.empty(shape, dtype)
    if name == "bf16":
        values = (np.ascontiguousarray(values).astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(values).reshape([1] * batch + shape), name
