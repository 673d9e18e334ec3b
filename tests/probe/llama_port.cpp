// A program that uses llama.cpp and records itself in one line. Compiled as a library, because the engine of the wheel
// is a Python module: tests/python/test_engine_llama_header.py loads that one first, then this.
#include <cstdio>
#include <exception>

#include "llama.h"
#include "parity_llama.hpp"

namespace {
int seen = 0, asked = 0;
bool count(ggml_tensor* tensor, bool ask, void*) {  // the program's own callback: wants one tensor
  asked += ask;
  seen += !ask;
  return !ask || std::string_view(ggml_get_name(tensor)) == "result_norm";
}
}  // namespace

extern "C" int port(const char* model_path, const char* dump, std::int32_t* tokens, std::int32_t count_of_tokens) try {
  llama_model* model = llama_model_load_from_file(model_path, llama_model_default_params());
  if (model == nullptr) return 1;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 64;
  params.cb_eval = count;
  parity::llama::Recorder recorder(params, dump);
  llama_context* context = llama_init_from_model(model, params);
  llama_set_n_threads(context, 1, 1);
  const int status = llama_decode(context, llama_batch_get_one(tokens, count_of_tokens));
  llama_free(context);
  llama_model_free(model);
  recorder.writer().close();
  return status != 0 ? 2 : seen == 1 && asked > 1 ? 0 : 3;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 4;
}
