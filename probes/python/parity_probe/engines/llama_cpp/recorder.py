"""One model, one context, some evaluations, each tensor written as it is computed."""
import ctypes
import os
import struct

import numpy as np

from ...errors import Error
from ...version import __version__
from ...writer import Writer
from . import library as libraries
from .structs import EVALUATED, Params, verify_batch, verify_tensor
from .tensors import VIEWS, array

CACHES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}  # enum ggml_type


def record(model, tokens, path, library=None, cache="f32", flash_attention=False, outputs="all", views=False, batch=False, threads=0, config=None):
    """Evaluates `tokens` with the GGUF file `model` and writes every tensor to the HDF5 file `path`.

    tokens           token ids of one sequence, or a list of such lists: evaluated one after the other on the same KV cache (a prompt in chunks, then single tokens)
    library          path of libllama; default: PARITY_LLAMA, an installed wheel (xllamacpp, llama_cpp), the system's
    cache            dtype of the KV cache: f32, f16 (llama.cpp's default), bf16, q8_0
    flash_attention  False: attention as single ops, so that scores and probabilities are seen; True; None: as llama.cpp chooses.
                     False and an f32 cache are what compares best with a reference; `cache="f16", flash_attention=None` is what llama.cpp does by default.
    outputs          "all": logits of every token; "last": of the last one of each evaluation, as when generating
    views            also tensors that compute nothing (reshaped, permuted, views)
    batch            every tensor with a leading axis of one, as a PyTorch model has it; the maps in probes/maps/engines pair such recordings
    threads          0: as many as there are cores
    config           a mapping for the file's provenance

    Returns the logits as a float32 array (tokens with outputs, vocabulary). Raises parity_probe.Error: no libllama or one of unknown layout, a file that is no
    model, a token outside the vocabulary, a file that cannot be written.
    """
    chunks = _chunks(tokens)
    if cache not in CACHES:
        raise ValueError(f"cache must be one of {', '.join(CACHES)}, not {cache!r}")
    if outputs not in ("all", "last"):
        raise ValueError(f"outputs must be all or last, not {outputs!r}")
    found = libraries.load(library)
    engine = dict(cache=cache, flash_attention=flash_attention, outputs=outputs, library=os.path.basename(found.path), **found.version())
    writer = Writer(path, config=config, model=os.path.basename(os.fspath(model)), producer=f"parity_probe.engines.llama_cpp {__version__}",
                    about=lambda: {"engine": engine})
    with writer, _Evaluation(found, model, writer, views, batch) as run:
        run.start(chunks, CACHES[cache], flash_attention, threads or os.cpu_count() or 1)
        return np.concatenate([run.evaluate(chunk, outputs) for chunk in chunks])


def _chunks(tokens):
    tokens = list(tokens)
    chunks = [[int(t) for t in chunk] for chunk in (tokens if tokens and np.ndim(tokens[0]) else [tokens])]
    if not all(chunks):
        raise ValueError("no tokens to evaluate")
    return chunks


class _Evaluation:
    def __init__(self, found, model, writer, views, batch):
        self.api, self.library, self.path = found.api, found, os.fspath(model)
        self.writer, self.views, self.batch = writer, views, bool(batch)
        self.model = self.context = self.failure = self.logits = None
        self.position, self.seen = 0, 0
        self._callback = EVALUATED(self._evaluated)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.context:
            self.api.llama_free(self.context)
        if self.model:
            self.api.llama_model_free(self.model)

    def start(self, chunks, cache, flash_attention, threads):
        """Loads the model and makes the context."""
        if not os.path.isfile(self.path):
            raise Error(f"{self.path}: no such file")
        self.library.log = []
        self.model = self.api.llama_model_load_from_file(os.fsencode(self.path), self.api.llama_model_default_params())
        if not self.model:
            raise Error(f"{self.path}: libllama cannot load it: {self.library.reason()}")
        vocabulary = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.model))
        for token in (t for chunk in chunks for t in chunk):
            if not 0 <= token < vocabulary:
                raise Error(f"{self.path}: token {token} is not in its vocabulary of {vocabulary}")
        length, longest = sum(map(len, chunks)), max(map(len, chunks))
        params, at = self.api.llama_context_default_params(), self.library.fields
        batch = max(longest, 32)
        for offset, kind, value in ((at.n_ctx, "<I", length), (at.n_batch, "<I", batch), (at.n_ubatch, "<I", batch), (at.type_k, "<i", cache), (at.type_v, "<i", cache),
                                    (at.callback, "<Q", ctypes.cast(self._callback, ctypes.c_void_p).value),
                                    (at.flash_attention, "<i", -1 if flash_attention is None else int(flash_attention))):
            struct.pack_into(kind, params, offset, value)
        self.context = self.api.llama_init_from_model(self.model, params)
        if not self.context:
            raise Error(f"{self.path}: libllama makes no context of {length} tokens: {self.library.reason()}")
        if self.api.llama_n_ctx(self.context) < length or self.api.llama_n_ubatch(self.context) < longest:
            raise Error(f"{self.path}: libllama offers a context of {self.api.llama_n_ctx(self.context)} tokens, {length} were given")
        self.api.llama_set_n_threads(self.context, threads, threads)

    def evaluate(self, tokens, outputs):
        """One llama_decode. Returns its logits."""
        self.writer.write("inp_tokens", np.array([tokens] if self.batch else tokens, np.int32), role="input", source="")
        batch = self.api.llama_batch_init(len(tokens), 0, 1)
        try:
            verify_batch(batch, len(tokens), self.library.path)
            batch.n_tokens = len(tokens)
            for i, token in enumerate(tokens):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, self.position + i, 1, 0
                batch.logits[i] = outputs == "all" or i == len(tokens) - 1
            before, self.library.log, self.logits = self.seen, [], None
            status = self.api.llama_decode(self.context, batch)
        finally:
            self.api.llama_batch_free(batch)
        if self.failure is not None:
            raise self.failure
        if status:
            raise Error(f"{self.path}: llama_decode failed with status {status}: {self.library.reason()}")
        if self.seen == before or self.logits is None:
            raise Error(f"{self.library.path}: computed without calling the evaluation callback: its llama_context_params are not as assumed")
        self.position += len(tokens)
        return self.logits

    def _evaluated(self, tensor, ask, _):
        """The evaluation callback: asked before each op whether its value is wanted, then called with it. False ends the evaluation."""
        if self.failure is not None:
            return False
        if ask:
            return True
        try:
            self._write(tensor)
        except BaseException as e:  # KeyboardInterrupt too: nothing may pass through C
            self.failure = e
        return self.failure is None

    def _write(self, tensor):
        if self.seen == 0:
            verify_tensor(self.api, tensor, self.library.path)
        self.seen += 1
        if not self.views and self.api.ggml_op_name(tensor.contents.op).decode() in VIEWS:
            return
        name = self.api.ggml_get_name(tensor).decode(errors="replace")
        values, kind = array(self.api, tensor, self.batch)
        if values is None:
            self.writer.note(skipped=name, type=kind)
            return
        self.writer.write(name, values, source="")
        if name == "result_output":
            self.logits = np.atleast_2d(values[0] if self.batch else values).astype(np.float32)
