#include "report/row_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "report/growth.hpp"

namespace parity {
namespace {

std::string class_of(int64_t n) {
  if (n > 1 && std::has_single_bit(static_cast<uint64_t>(n))) return "a power of two";
  return n % 2 != 0 ? "odd" : "even, no power of two";
}

// Kernels change their blocking at sizes like these.
std::string size_of(int64_t elements) {
  constexpr std::pair<int64_t, const char*> kSizes[] = {{1'000, "below 1e3"},
                                                        {10'000, "1e3 to 1e4"},
                                                        {100'000, "1e4 to 1e5"},
                                                        {1'000'000, "1e5 to 1e6"},
                                                        {10'000'000, "1e6 to 1e7"}};
  for (const auto& [below, text] : kSizes)
    if (elements < below) return text;
  return "1e7 or more";
}

/// Words of a path: no numbers, "_scaled_dot_product.0[1]" as "_scaled_dot_product".
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find_first_of("./", begin), path.size());
    std::string part = path.substr(begin, end - begin);
    part = part.substr(0, part.find('['));
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    if (!number && std::find(out.begin(), out.end(), part) == out.end()) out.push_back(std::move(part));
    begin = end + 1;
  }
  return out;
}

void add_shape(const OpResult& op, std::vector<Attribute>& out) {
  out.emplace_back("number of dimensions", std::to_string(op.shape.size()));
  if (op.shape.empty()) return;
  int64_t elements = 1;
  for (const int64_t n : op.shape) elements *= n;
  const int64_t columns = op.shape.back(), rows = columns > 0 ? elements / columns : 0;
  out.emplace_back("last dimension", std::to_string(columns));
  out.emplace_back("last dimension", class_of(columns));
  out.emplace_back("rows", std::to_string(rows));
  out.emplace_back("rows", class_of(rows));
  out.emplace_back("elements", size_of(elements));
}

void add_layer(const OpResult& op, int first, int last, std::vector<Attribute>& out) {
  const int layer = layer_of(op);
  out.emplace_back("layer", layer < 0 ? "none" : layer % 2 != 0 ? "odd" : "even");
  if (layer < 0) return;
  out.emplace_back("layer", layer == first ? "the first" : "not the first");
  out.emplace_back("layer", layer == last ? "the last" : "not the last");
}

}  // namespace

int layer_of(const OpResult& op) { return place_of(op.path).number; }

std::vector<Attribute> attributes_of(const OpResult& op, int first_layer, int last_layer) {
  std::vector<Attribute> out{{"dtype", op.dtype}, {"tensor dtype", op.tensor_dtype}, {"kind", op.kind}};
  add_shape(op, out);
  add_layer(op, first_layer, last_layer, out);
  out.emplace_back("call", std::to_string(op.call));
  out.emplace_back("call", op.call == 0 ? "the first" : "not the first");
  out.emplace_back("recording", op.reference);
  for (const std::string& part : parts_of(op.path)) out.emplace_back("part of the path", part);
  if (op.candidate_path != op.path)
    for (const std::string& part : parts_of(op.candidate_path)) out.emplace_back("part of the port's path", part);
  return out;
}

}  // namespace parity
