#include "pair/candidate.hpp"

#include <charconv>

#include "trace/path.hpp"

namespace parity {
namespace {

/// "path (call 2)", as sets name what later calls gave: {"path", 2}; any other name is that of call 0.
std::pair<std::string, int> call_of(const std::string& name) {
  static constexpr std::string_view kBegin = " (call ";
  const size_t at = name.rfind(kBegin);
  if (at == std::string::npos || name.back() != ')') return {name, 0};
  const char *first = name.data() + at + kBegin.size(), *last = name.data() + name.size() - 1;
  int call = 0;
  const auto [end, problem] = std::from_chars(first, last, call);
  return problem == std::errc() && end == last && call > 0 ? std::pair(name.substr(0, at), call) : std::pair(name, 0);
}

}  // namespace

std::vector<CandidateTensor> tensors_of(const Dump& dump, const Program& program) {
  std::vector<CandidateTensor> tensors;
  for (const Boundary& b : program.boundaries) {
    if (!b.comparable || b.value.key.empty()) continue;
    const bool of_op = b.kind != "point" && is_op_path(b.path);
    tensors.push_back({b.path, b.call, b.value.dtype, b.value.shape,
                       [&dump, value = b.value] { return stored_value(dump, value); }, of_op, program.source(b.line)});
  }
  return tensors;
}

std::vector<CandidateTensor> tensors_of(const TensorSet& set) {
  std::vector<CandidateTensor> tensors;
  for (const std::string& name : set.names()) {
    const auto& [dtype, shape] = set.type(name);
    const auto [path, call] = call_of(name);
    tensors.push_back({path, call, dtype, shape, [&set, name] { return set.value(name); }, false});
  }
  return tensors;
}

}  // namespace parity
