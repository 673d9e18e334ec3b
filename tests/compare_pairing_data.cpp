#include "compare_pairing_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "trace/replay.hpp"

namespace parity::test {

NamedTensor named(const std::string& path, const at::Tensor& value, int call) {
  return {path, call, value.scalar_type(), value.sizes().vec(), fingerprint_of(value)};
}

at::Tensor random_tensor(at::IntArrayRef shape, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator);
}

std::vector<NamedTensor> recorded_tensors(const Dump& dump, const Program& program, std::vector<size_t>* boundaries) {
  std::vector<NamedTensor> tensors;
  replay(dump, program, {}, [&](size_t b, const at::Tensor& computed) -> std::optional<at::Tensor> {
    const Boundary& boundary = program.boundaries[b];
    if (!boundary.comparable) return std::nullopt;
    tensors.push_back(named(boundary.path, computed, boundary.call));
    if (boundaries) boundaries->push_back(b);
    return std::nullopt;
  });
  return tensors;
}

namespace {

// Bitwise, or a cast of each other, in whatever layout.
bool equal_readings(const NamedTensor& a, const NamedTensor& b) {
  if (&a == &b) return true;
  if (a.print.readings.empty() || std::abs(a.print.rms - b.print.rms) > 4e-3 * a.print.rms) return false;
  const auto reads_as = [](const NamedTensor& x, const NamedTensor& y) {
    return std::any_of(y.print.readings.begin(), y.print.readings.end(), [&x](const Reading& reading) {
      return reading.whole() && content_distance(x.print.readings[0], reading) < 4e-3;
    });
  };
  return reads_as(a, b) || reads_as(b, a);
}

}  // namespace

PairingScore score(const AutoPairing& pairing, const std::vector<NamedTensor>& reference,
                   const std::vector<NamedTensor>& candidate, const std::map<size_t, size_t>& truth) {
  PairingScore score;
  score.comparable = truth.size();
  std::map<size_t, const AutoPair*> found;
  for (const AutoPair& pair : pairing.pairs) found[pair.candidate] = &pair;
  const auto line = [&](const char* what, size_t c, const AutoPair* pair) {
    const auto expected = truth.find(c);
    score.faults.push_back(fmt::format("{} {}: got {} ({:.2f}: {}), expected {}", what, candidate[c].path,
                                       pair ? reference[pair->reference].path : "nothing", pair ? pair->confidence : 0,
                                       pair ? pair->evidence : "",
                                       expected == truth.end() ? "nothing" : reference[expected->second].path));
  };
  for (size_t c = 0; c < candidate.size(); ++c) {
    const auto pair = found.find(c);
    const auto expected = truth.find(c);
    if (pair == found.end()) {
      if (expected == truth.end()) continue;
      const bool twin = std::any_of(found.begin(), found.end(), [&](const auto& other) {  // its double took the place
        return equal_readings(candidate[other.first], candidate[c]) &&
               equal_readings(reference[other.second->reference], reference[expected->second]);
      });
      ++(twin ? score.right : score.missed);
      if (!twin) line("missed", c, nullptr);
      continue;
    }
    const size_t r = pair->second->reference;
    const bool right = std::any_of(truth.begin(), truth.end(), [&](const auto& known) {
      return equal_readings(reference[known.second], reference[r]) &&
             equal_readings(candidate[known.first], candidate[c]);
    });
    ++(right ? score.right : score.wrong);
    if (!right) line("wrong", c, pair->second);
  }
  return score;
}

}  // namespace parity::test
