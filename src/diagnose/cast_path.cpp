#include "diagnose/cast_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "core/segment.hpp"
#include "diagnose/limits.hpp"
#include "measure/measure.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

struct Word {
  std::string_view kind, word;
};
constexpr std::array kWords{Word{"native_layer_norm", "LayerNorm"},
                            Word{"_fused_rms_norm", "RMSNorm"},
                            Word{"addmm", "Linear"},
                            Word{"mm", "matrix product"},
                            Word{"bmm", "batched product"},
                            Word{"_softmax", "softmax"},
                            Word{"gelu", "GELU"},
                            Word{"silu", "SiLU"},
                            Word{"convolution", "convolution"}};

std::string word_of(const std::string& kind) {
  if (kind.find("attention") != std::string::npos) return "attention";
  for (const Word& w : kWords)
    if (w.kind == kind) return std::string(w.word);
  return kind;
}

bool computes(const Op& op) {
  const bool of_floats = !op.outputs.empty() && op.outputs[0] && is_float(op.outputs[0]->dtype);
  return of_floats && !op.view && !only_moves(op.kind) && !is_uninitialised(op.kind) && op.kind != "copy_";
}

}  // namespace

std::string cast_path_of(const Program& program, const Segment& segment) {
  std::string text, words, dtype;
  const auto flush = [&] {
    if (!words.empty()) text += (text.empty() ? "" : ", ") + fmt::format("{} in {}", words, dtype);
    words.clear();
  };
  for (const size_t index : segment.ops) {
    const Op& op = program.ops[index];
    if (!computes(op)) continue;
    const std::string result = short_dtype_name(op.outputs[0]->dtype);
    if (op.kind == "_to_copy" || op.kind == "to") {
      flush();
      text += (text.empty() ? "" : ", ") + fmt::format("cast to {}", result);
      continue;
    }
    if (result != dtype) flush();
    dtype = result;
    words += (words.empty() ? "" : " · ") + word_of(op.kind);
  }
  flush();
  return text;
}

CastPlacement placement(std::string name, const at::Tensor& tried, const at::Tensor& candidate, at::ScalarType dtype) {
  const Stats s = measure_sums(tried.to(dtype), candidate);
  return {std::move(name), s.bitwise_equal_share.value_or(0), s.rel_l2.value_or(0)};
}

void conclude(DtypePath& path, const std::string& reference) {
  std::stable_sort(path.candidates.begin(), path.candidates.end(), [](const CastPlacement& a, const CastPlacement& b) {
    return a.bitwise_equal_share > b.bitwise_equal_share + kPlacement.better;
  });
  const CastPlacement& best = path.candidates.front();
  path.sentence =
      fmt::format("{}: reference: {}; {}{} ({:.4g} % bitwise equal)", path.path.empty() ? "(result)" : path.path,
                  reference.empty() ? "nothing computed" : reference, path.side == "reference" ? "" : path.side + ": ",
                  best.name, 100 * best.bitwise_equal_share);
}

}  // namespace parity
