// Lists of tensors for the automatic pairing, from recordings, models and nothing.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "pair/by_content.hpp"
#include "trace/program.hpp"

namespace parity::test {

/// Every comparable boundary of a recording, in execution order; replayed as recorded. `boundaries`: their indices.
std::vector<NamedTensor> recorded_tensors(const Dump& dump, const Program& program,
                                          std::vector<size_t>* boundaries = nullptr);

NamedTensor named(const std::string& path, const at::Tensor& value, int call = 0);

/// Of the standard normal distribution, fp32.
at::Tensor random_tensor(at::IntArrayRef shape, uint64_t seed);

struct PairingScore {
  size_t right = 0, wrong = 0, missed = 0;
  size_t comparable = 0;            // candidate tensors that have a counterpart
  std::vector<std::string> faults;  // a line each: wrong and missed
};

/// `truth`: candidate -> reference. Another tensor of the same content, on either side, is right as well (a wrapper's
/// output and its last child's, or a cast of it).
PairingScore score(const AutoPairing& pairing, const std::vector<NamedTensor>& reference,
                   const std::vector<NamedTensor>& candidate, const std::map<size_t, size_t>& truth);

}  // namespace parity::test
