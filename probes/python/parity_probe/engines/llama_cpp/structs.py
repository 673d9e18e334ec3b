"""Where fields lie in libllama's structs, found in the installed library itself: its C API passes structs by value and adds fields between releases.

`llama_context_params` is searched by its defaults: four enums of -1 (RoPE scaling, pooling, attention type, flash attention: unspecified or automatic), the
RoPE base and scale of 0 ("from the model"), YaRN's factors, then the two pointers of the evaluation callback and the K and V cache types, both F16. A
library whose defaults do not show exactly this is refused: a field written to the wrong place would compute something else without a word.
"""
import ctypes
import struct

from ...errors import Error

SPACE = 512  # bytes; more than the structs have (168 in 2026). Passed by value, what the library does not know is never read.
F32, F16 = 0, 1  # enum ggml_type
MEMORY = {"x86_64", "AMD64", "aarch64", "arm64"}  # ABIs that pass large structs in memory, so that a longer one is as good


class Params(ctypes.Structure):
    """llama_context_params or llama_model_params, of any release."""
    _fields_ = [("words", ctypes.c_uint64 * (SPACE // 8))]


class Batch(ctypes.Structure):
    """llama_batch: tokens of one or several sequences."""
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.POINTER(ctypes.c_float)),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


class Tensor(ctypes.Structure):
    """The head of ggml_tensor; unchanged since 2024, and verified on the first tensor that arrives (`verify_tensor`)."""
    _fields_ = [("type", ctypes.c_int32), ("buffer", ctypes.c_void_p), ("ne", ctypes.c_int64 * 4), ("nb", ctypes.c_size_t * 4), ("op", ctypes.c_int32)]


EVALUATED = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(Tensor), ctypes.c_bool, ctypes.c_void_p)  # ggml_backend_sched_eval_callback


class ContextFields:
    """Byte offsets in llama_context_params."""
    n_ctx, n_batch, n_ubatch = 0, 4, 8

    def __init__(self, defaults, library):
        """`defaults`: bytes of llama_context_default_params(). Raises parity_probe.Error when they are not those of a release that this recorder knows."""
        for at in range(16, SPACE - 80, 4):
            if struct.unpack_from("<4i", defaults, at) == (-1, -1, -1, -1):
                self.flash_attention, self.rope_base, self.rope_scale = at + 12, at + 16, at + 20
                # base, scale, YaRN: extrapolation, attention factor, fast, slow (32 and 1 in older releases, -1 in newer), length; defragmentation
                floats = struct.unpack_from("<6fIf", defaults, at + 16)
                self.callback = (at + 16 + 32 + 7) // 8 * 8
                pointers = struct.unpack_from("<QQ", defaults, self.callback)
                self.type_k, self.type_v = self.callback + 16, self.callback + 20
                types = struct.unpack_from("<2i", defaults, self.type_k)
                if floats[:3] == (0.0, 0.0, -1.0) and floats[6] == 0 and pointers == (0, 0) and types == (F16, F16):
                    break
                raise refused(library, "llama_context_params")
        else:
            raise refused(library, "llama_context_params")
        n_ctx, n_batch, n_ubatch, n_seq = struct.unpack_from("<4I", defaults)
        if not (n_batch >= n_ubatch >= 32 and n_seq == 1 and n_ctx in (0, 512, 4096)):
            raise refused(library, "llama_context_params")


def refused(library, what):
    return Error(f"{library}: the layout of {what} is not one that this recorder knows (it knows libllama since flash_attn_type, August 2025): "
                 "use the C++ header probes/engines/llama_cpp/parity_llama.hpp, compiled against that release's llama.h")


def verify_batch(batch, n_tokens, library):
    """Raises parity_probe.Error when `llama_batch_init` of that many tokens did not fill the fields that this recorder uses."""
    if batch.n_tokens != 0 or batch.embd or not (batch.token and batch.pos and batch.n_seq_id and batch.seq_id and batch.logits):
        raise refused(library, "llama_batch")
    if not all(batch.seq_id[i] for i in range(n_tokens)) or batch.seq_id[n_tokens]:
        raise refused(library, "llama_batch")


def verify_tensor(api, tensor, library):
    """Raises parity_probe.Error when ggml's own functions say something else of `tensor` than its fields."""
    t = tensor.contents
    elements = t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]
    same = (api.ggml_nelements(tensor) == elements and api.ggml_element_size(tensor) == api.ggml_type_size(t.type) and api.ggml_op_name(t.op)
            and api.ggml_n_dims(tensor) == max([i + 1 for i in range(4) if t.ne[i] > 1] or [1]))
    if not same:
        raise refused(library, "ggml_tensor")
