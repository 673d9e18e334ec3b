"""probes/engines/llama_cpp/parity_llama.hpp, compiled and run against the engine of the wheel: what it writes is what the ctypes recorder writes.

The wheel has no headers. The ones made here declare what the header uses: enums as the library itself names them, structs as the recorder verified them."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("xllamacpp")

import engine_models as models  # noqa: E402
import gguf_models  # noqa: E402
import h5py  # noqa: E402
import numpy as np  # noqa: E402
from parity_probe.engines import llama_cpp  # noqa: E402
from parity_probe.engines.llama_cpp import library, structs  # noqa: E402
from test_engine_llama_cpp import events, tensors  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = """
import ctypes, sys
library, port, model, dump, *tokens = sys.argv[1:]
ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
tokens = (ctypes.c_int32 * len(tokens))(*map(int, tokens))
sys.exit(ctypes.CDLL(port).port(model.encode(), dump.encode(), tokens, len(tokens)))
"""
HEADER = """#pragma once
#include <cstddef>
#include <cstdint>
extern "C" {
%s
struct ggml_tensor { ggml_type type; void* buffer; std::int64_t ne[4]; std::size_t nb[4]; ggml_op op; std::int32_t op_params[16]; std::int32_t flags;
  ggml_tensor* src[10]; };
typedef bool (*ggml_backend_sched_eval_callback)(ggml_tensor*, bool, void*);
const char* ggml_get_name(const ggml_tensor*);
const char* ggml_type_name(ggml_type);
std::size_t ggml_nbytes(const ggml_tensor*);
int ggml_n_dims(const ggml_tensor*);
void ggml_backend_tensor_get(const ggml_tensor*, void*, std::size_t, std::size_t);
}
"""
LLAMA = """#pragma once
#include "ggml.h"
extern "C" {
struct llama_model; struct llama_context;
struct llama_model_params { std::uint64_t words[64]; };
struct llama_context_params { std::uint32_t n_ctx; char before[%d]; ggml_backend_sched_eval_callback cb_eval; void* cb_eval_user_data; char after[%d]; };
struct llama_batch { std::int32_t n_tokens; std::int32_t* token; void* rest[5]; };
llama_model_params llama_model_default_params();
llama_context_params llama_context_default_params();
llama_model* llama_model_load_from_file(const char*, llama_model_params);
llama_context* llama_init_from_model(llama_model*, llama_context_params);
llama_batch llama_batch_get_one(std::int32_t*, std::int32_t);
std::int32_t llama_decode(llama_context*, llama_batch);
void llama_set_n_threads(llama_context*, std::int32_t, std::int32_t);
void llama_free(llama_context*);
void llama_model_free(llama_model*);
}
"""


def enum(kind, prefix, names, wanted):
    """`enum kind` with the library's own numbers."""
    found = {name: i for i, name in enumerate(names) if name}
    return f"enum {kind} {{ " + ", ".join(f"{prefix}{w} = {found[w]}" for w in wanted) + " };"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder, api = tmp_path_factory.mktemp("llama_header"), library.load().api
    ops, i = [], 0
    while len(ops) < 90:  # fewer than ggml has
        ops.append(api.ggml_op_name(len(ops)).decode())
    types = [(api.ggml_type_name(i) or b"").decode().upper() for i in range(31)]
    enums = enum("ggml_op", "GGML_OP_", ops, ["NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE", "GET_ROWS"]) + "\n" + \
        enum("ggml_type", "GGML_TYPE_", types, ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64", "Q8_0"])
    (folder / "ggml.h").write_text(HEADER % enums)
    (folder / "ggml-backend.h").write_text('#include "ggml.h"\n')
    callback = library.load().fields.callback
    (folder / "llama.h").write_text(LLAMA % (callback - 4, structs.SPACE - callback - 16))
    flags = [subprocess.run(["pkg-config", kind, "hdf5"], capture_output=True, text=True, check=True).stdout.split() for kind in ("--cflags", "--libs")]
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-shared", "-fPIC", f"-I{folder}", f"-I{ROOT / 'probes/cpp'}",
                    f"-I{ROOT / 'probes/engines/llama_cpp'}", *flags[0], str(ROOT / "tests/probe/llama_port.cpp"), "-o", str(folder / "port.so"), *flags[1], "-pthread"],
                   check=True)
    return folder / "port.so"


def test_it_writes_what_the_recorder_writes(port, tmp_path):
    gguf = gguf_models.write(tmp_path / "m.gguf", *gguf_models.converted(models.model("gpt2")))
    arguments = [sys.executable, "-c", RUN, library.load().path, str(port), str(gguf)]
    tokens = [str(t) for t in models.TOKENS]
    done = subprocess.run([*arguments, str(tmp_path / "c.h5"), *tokens], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    llama_cpp.record(gguf, models.TOKENS, tmp_path / "p.h5", outputs="last", threads=1, cache="f16", flash_attention=None)
    one, other = tensors(tmp_path / "c.h5"), tensors(tmp_path / "p.h5")
    assert one.pop(("inp_pos", 0)).tolist() == list(range(24))   # seen where GPT-2 looks up positions
    one = {k: v for k, v in one.items() if not re.match(r"inp_(out_ids|pos|mixed_tokens)", k[0])}
    assert set(one) == set(other) and len(one) > 60
    unused = {"node_1", "node_2", " (view)"}  # of batches that mix tokens and embeddings: without such, whatever the memory held
    for key, values in ((k, v) for k, v in one.items() if k[0] not in unused):
        assert values.dtype == other[key].dtype and np.array_equal(values.reshape(-1), other[key].reshape(-1)), key
    assert {e["path"] for e in events(tmp_path / "c.h5") if e["e"] == "point" and e["role"] == "input"} >= {"inp_tokens", "inp_pos"}
    with h5py.File(tmp_path / "c.h5") as f:
        assert f.attrs["complete"] == 1


def test_without_a_file_nothing_is_set(port, tmp_path):
    gguf = gguf_models.write(tmp_path / "m.gguf", *gguf_models.converted(models.model("gpt2")))
    done = subprocess.run([sys.executable, "-c", RUN, library.load().path, str(port), str(gguf), "", "1", "2"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and os.listdir(tmp_path) == ["m.gguf"], done.stderr[-2000:]
