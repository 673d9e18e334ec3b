// Records every tensor that llama.cpp computes, for parity-check. One line in a program that uses llama.h, before it
// makes its context:
//
//     parity::llama::Recorder recorder(params, std::getenv("PARITY_DUMP"));  // llama_context_params or common_params
//     llama_context* context = llama_init_from_model(model, params);
//
// C++17 (as probes/cpp/parity_probe.hpp, which it needs beside ggml's own headers). Tensors are written under ggml's
// names (`Qcur-0`, `l_out-1`), axes from the outermost to the innermost (ggml's `ne` reversed), dtypes kept; a name
// that comes again is its next call. Without a file name nothing is set and nothing is written. ggml runs op by op
// while it is recorded, and fuses none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "parity_probe.hpp"

namespace parity::llama {

class Recorder {
 public:
  /// Sets `cb_eval` of `params`; a callback that is there already goes on being called. The recorder must live as long
  /// as the context, at the same address. Throws parity::probe::Error when no file can be made at `path`.
  template <class Params>
  Recorder(Params& params, const char* path, bool views = false, probe::Options options = {})
      : writer_(path, std::move(options)), views_(views), next_(params.cb_eval), next_data_(params.cb_eval_user_data) {
    if (!writer_.on()) return;
    params.cb_eval = &Recorder::evaluated;
    params.cb_eval_user_data = this;
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  probe::Writer& writer() { return writer_; }

  /// ggml_backend_sched_eval_callback: asked before each op, told its result after.
  static bool evaluated(ggml_tensor* tensor, bool ask, void* self) {
    return static_cast<Recorder*>(self)->evaluated(tensor, ask);
  }

 private:
  bool evaluated(ggml_tensor* tensor, bool ask) {
    if (ask) {
      next_wants_ = next_ != nullptr && next_(tensor, true, next_data_);
      write_indices(tensor);
      return true;
    }
    if (views_ || computes(tensor->op)) write(tensor, probe::Role::output);
    return !next_wants_ || next_(tensor, false, next_data_);
  }

  /// Token ids and positions are no op's result: they are seen where a lookup takes them.
  void write_indices(const ggml_tensor* tensor) {
    if (tensor->op != GGML_OP_GET_ROWS) return;
    const ggml_tensor* indices = tensor->src[1];
    if (indices != nullptr && std::string_view(ggml_get_name(indices)).substr(0, 4) == "inp_")
      write(indices, probe::Role::input);
  }

  static bool computes(ggml_op op) {
    return op != GGML_OP_NONE && op != GGML_OP_RESHAPE && op != GGML_OP_VIEW && op != GGML_OP_PERMUTE &&
           op != GGML_OP_TRANSPOSE;
  }

  void write(const ggml_tensor* tensor, probe::Role role) {
    const probe::Dtype* dtype = dtype_of(tensor->type);
    if (dtype == nullptr) {
      writer_.note(std::string("left out ") + ggml_get_name(tensor) + ": " + ggml_type_name(tensor->type));
      return;
    }
    bytes_.resize(ggml_nbytes(tensor));  // of a view with gaps: from its first byte to its last
    if (bytes_.empty()) return;
    ggml_backend_tensor_get(tensor, bytes_.data(), 0, bytes_.size());
    shape_.clear();
    strides_.clear();
    for (int axis = ggml_n_dims(tensor) - 1; axis >= 0; --axis) {
      shape_.push_back(tensor->ne[axis]);
      strides_.push_back(static_cast<std::int64_t>(tensor->nb[axis] / dtype->size));
    }
    writer_.write(ggml_get_name(tensor), bytes_.data(), shape_, *dtype, role, strides_, {}, probe::Line{});
  }

  static const probe::Dtype* dtype_of(ggml_type type) {
    switch (type) {
      case GGML_TYPE_F32:
        return &probe::f32;
      case GGML_TYPE_F16:
        return &probe::f16;
      case GGML_TYPE_BF16:
        return &probe::bf16;
      case GGML_TYPE_F64:
        return &probe::f64;
      case GGML_TYPE_I8:
        return &probe::i8;
      case GGML_TYPE_I16:
        return &probe::i16;
      case GGML_TYPE_I32:
        return &probe::i32;
      case GGML_TYPE_I64:
        return &probe::i64;
      default:
        return nullptr;  // quantised blocks are no array of numbers
    }
  }

  probe::Writer writer_;
  bool views_, next_wants_ = false;
  ggml_backend_sched_eval_callback next_;
  void* next_data_;
  std::vector<char> bytes_;
  std::vector<std::int64_t> shape_, strides_;
};

}  // namespace parity::llama
