"""Finds and loads an installed libllama: the one named, or that of a Python wheel which carries it, or the system's."""
import ctypes
import ctypes.util
import functools
import glob
import importlib.util
import os
import platform

from ...errors import Error
from .structs import EVALUATED, MEMORY, Batch, ContextFields, Params, Tensor  # noqa: F401

# Wheels with libllama's C API: (package, where in it). xllamacpp's extension module has the API's symbols as its own.
WHEELS = (("xllamacpp", "xllamacpp*.so"), ("xllamacpp", "*.pyd"), ("llama_cpp", "lib/libllama.*"), ("llama_cpp", "lib/llama.dll"))

_TENSOR, _POINTER, _INT, _SIZE = ctypes.POINTER(Tensor), ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
PROTOTYPES = {  # name: (result, arguments); probes/engines/llama_cpp/parity_llama.hpp uses those of tensors
    "llama_backend_init": (None, []),
    "llama_model_default_params": (Params, []),
    "llama_model_load_from_file": (_POINTER, [ctypes.c_char_p, Params]),
    "llama_model_free": (None, [_POINTER]),
    "llama_model_desc": (_INT, [_POINTER, ctypes.c_char_p, _SIZE]),
    "llama_context_default_params": (Params, []),
    "llama_init_from_model": (_POINTER, [_POINTER, Params]),
    "llama_free": (None, [_POINTER]),
    "llama_n_ctx": (ctypes.c_uint32, [_POINTER]),
    "llama_n_batch": (ctypes.c_uint32, [_POINTER]),
    "llama_n_ubatch": (ctypes.c_uint32, [_POINTER]),
    "llama_set_n_threads": (None, [_POINTER, _INT, _INT]),
    "llama_model_get_vocab": (_POINTER, [_POINTER]),
    "llama_vocab_n_tokens": (_INT, [_POINTER]),
    "llama_batch_init": (Batch, [_INT, _INT, _INT]),
    "llama_batch_free": (None, [Batch]),
    "llama_decode": (_INT, [_POINTER, Batch]),
    "llama_log_set": (None, [_LOG, _POINTER]),
    "ggml_backend_tensor_get": (None, [_TENSOR, _POINTER, _SIZE, _SIZE]),
    "ggml_backend_reg_count": (_SIZE, []),
    "ggml_backend_load_all": (None, []),
    "ggml_nbytes": (_SIZE, [_TENSOR]),
    "ggml_nelements": (ctypes.c_int64, [_TENSOR]),
    "ggml_element_size": (_SIZE, [_TENSOR]),
    "ggml_n_dims": (ctypes.c_int, [_TENSOR]),
    "ggml_get_name": (ctypes.c_char_p, [_TENSOR]),
    "ggml_type_size": (_SIZE, [ctypes.c_int]),
    "ggml_type_name": (ctypes.c_char_p, [ctypes.c_int]),
    "ggml_op_name": (ctypes.c_char_p, [ctypes.c_int]),
}
OPTIONAL = ("ggml_commit", "llama_version")  # const char * (void)


class Library:
    """libllama, loaded: `api` has its functions, `fields` the places of llama_context_params, `log` what it said last."""

    def __init__(self, path):
        self.path, self.log = path, []
        if platform.machine() not in MEMORY:
            raise Error(f"{path}: how {platform.machine()} passes structs is not known to this recorder")
        try:
            self.api = ctypes.CDLL(path)
        except OSError as e:
            raise Error(f"{path}: cannot be loaded: {e}") from None
        for name, (result, arguments) in PROTOTYPES.items():
            try:
                function = getattr(self.api, name)
            except AttributeError:
                raise Error(f"{path}: has no {name}: not libllama with its C API, or an older release than August 2025") from None
            function.restype, function.argtypes = result, arguments
        self.fields = ContextFields(bytes(self.api.llama_context_default_params()), path)
        self._said = _LOG(self._keep)  # libllama calls it as long as the process lives
        self.api.llama_log_set(self._said, None)
        self.api.llama_backend_init()
        if self.api.ggml_backend_reg_count() == 0:  # a build whose backends are files of their own
            self.api.ggml_backend_load_all()

    def _keep(self, level, text, _):
        self.log = (self.log + [text.decode(errors="replace").strip()])[-8:] if level == 4 else self.log  # GGML_LOG_LEVEL_ERROR

    def reason(self):
        """What the library complained of last, for an error's line."""
        return "; ".join(line for line in self.log if line) or "libllama gave no reason"

    def version(self):
        """{name: text} of what the library says of itself."""
        found = {}
        for name in OPTIONAL:
            function = getattr(self.api, name, None)
            if function is not None:
                function.restype, function.argtypes = ctypes.c_char_p, []
                found[name] = (function() or b"").decode(errors="replace")
        return found


def installed():
    """The path of an installed libllama. Raises parity_probe.Error when there is none."""
    named = os.environ.get("PARITY_LLAMA")
    if named:
        return named
    for package, pattern in WHEELS:
        spec = importlib.util.find_spec(package)  # does not import it
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            found = sorted(glob.glob(os.path.join(folder, pattern)))
            if found:
                return found[0]
    found = ctypes.util.find_library("llama")
    if found is None:
        raise Error("no libllama is installed: pip install xllamacpp, or name the file by library= or PARITY_LLAMA=/path/to/libllama.so")
    return found


@functools.lru_cache(maxsize=None)
def load(path=None):
    """The Library at `path` (default: `installed()`), loaded once. Raises parity_probe.Error."""
    return Library(os.fspath(path)) if path else load(installed())
