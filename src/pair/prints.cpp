#include "pair/prints.hpp"
#include "core/error.hpp"

#include <algorithm>

#include "pair/limits.hpp"
#include "pair/links.hpp"

namespace parity {

size_t Prints::position_of(size_t i) const {
  return static_cast<size_t>(std::lower_bound(index.begin(), index.end(), i) - index.begin());
}

const NamedTensor* Prints::find(size_t i) const {
  const size_t position = position_of(i);
  return position < index.size() && index[position] == i ? &tensors[position] : nullptr;
}

Prints reference_prints(const Dump& dump, const Program& program, const ShareDone& progress,
                        const BoundaryVisitor& forced) {
  Prints prints;
  const auto look = [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    const Boundary& boundary = program.boundaries[b];
    if (progress) progress(static_cast<double>(b + 1) / static_cast<double>(program.boundaries.size()));
    if (boundary.comparable) {
      prints.index.push_back(b);
      prints.tensors.push_back({boundary.path, boundary.call, boundary.value.dtype, boundary.value.shape,
                                fingerprint_of(value, Origin::reference)});
    }
    return forced ? forced(b, value) : std::nullopt;
  };
  try {
    replay(dump, program, {}, look);
  } catch (const Error&) {  // on the port's values an op may not run: an index that no table has
    if (!forced) throw;
    return reference_prints(dump, program, progress, nullptr);
  }
  return prints;
}

bool held_elsewhere(const Prints& here, const NamedTensor& tensor, const std::function<bool(size_t)>& eligible) {
  const ContentLimits& limits = kPairLimits.content;
  const double rms = tensor.print.rms, unlike = limits.same * limits.same;
  for (size_t i = 0; i < here.index.size(); ++i) {
    const double other = here.tensors[i].print.rms;  // a cheap first test, which compare_content repeats
    if (2 * rms * other < (1 - unlike) * (rms * rms + other * other) || !eligible(here.index[i])) continue;
    const auto link = compare_content(here.tensors[i], tensor);
    if (link && !is_part(*link) && link->distance <= limits.same && link->weight >= limits.layout_worth) return true;
  }
  return false;
}

Prints candidate_prints(const std::vector<CandidateTensor>& candidate, const ShareDone& progress) {
  Prints prints;
  for (size_t c = 0; c < candidate.size(); ++c) {
    if (candidate[c].of_op) continue;
    prints.index.push_back(c);
    prints.tensors.push_back({candidate[c].path, candidate[c].call, candidate[c].dtype, candidate[c].shape,
                              fingerprint_of(candidate[c].load(), Origin::engine)});
    if (progress) progress(static_cast<double>(c + 1) / static_cast<double>(candidate.size()));
  }
  return prints;
}

}  // namespace parity
