// The errors of both sides of a pair against an oracle.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "measure/blocks.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

// E[rel_l2] of one rounding of smooth data is 0.425 u: a reference that is exact by luck (a copy) must not give R =
// infinity.
constexpr double kFloor = 0.4;

struct Three {
  at::Tensor oracle, reference, candidate;  // from dense_reals
};

template <class T>
struct Squares {
  T oracle = 0, reference = 0, candidate = 0, product = 0;  // <o,o>, <e_r,e_r>, <e_c,e_c>, <e_r,e_c>
  int64_t finite = 0;
};

template <class T>
struct Buffers {
  std::array<T, kBlock> oracle, reference, candidate;
};

/// Errors of the finite triples of a block in the buffers' front.
template <class T>
int64_t errors(const Three& t, int64_t begin, int64_t n, Buffers<T>& b) {
  load(t.oracle, begin, n, b.oracle.data());
  load(t.reference, begin, n, b.reference.data());
  load(t.candidate, begin, n, b.candidate.data());
  size_t kept = 0;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const T o = b.oracle[i], r = b.reference[i], c = b.candidate[i];
    if (!std::isfinite(o) || !std::isfinite(r) || !std::isfinite(c)) continue;
    b.oracle[kept] = o;
    b.reference[kept] = r - o;
    b.candidate[kept++] = c - o;
  }
  return static_cast<int64_t>(kept);
}

Squares<double> sum(int64_t n, const Buffers<double>& b) {
  const auto p = kernels::block_products(b.oracle.data(), b.reference.data(), b.candidate.data(), n);
  return {p.aa, p.bb, p.cc, p.bc, n};
}

Squares<long double> sum(int64_t n, const Buffers<long double>& b) {
  Squares<long double> out{.finite = n};
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    out.oracle += b.oracle[i] * b.oracle[i];
    out.reference += b.reference[i] * b.reference[i];
    out.candidate += b.candidate[i] * b.candidate[i];
    out.product += b.reference[i] * b.candidate[i];
  }
  return out;
}

template <class T>
Squares<T> squares(const Three& t) {
  const int64_t n = t.oracle.numel(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<Squares<T>> per_block(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 64, [&](int64_t first, int64_t last) {
    const auto buffers = std::make_unique<Buffers<T>>();
    for (int64_t block = first; block < last; ++block) {
      const int64_t kept = errors(t, block * kBlock, std::min(kBlock, n - block * kBlock), *buffers);
      per_block[static_cast<size_t>(block)] = sum(kept, *buffers);
    }
  });
  Squares<T> all;
  for (const auto& block : per_block) {  // in order: the same digits for any thread count
    all.oracle += block.oracle;
    all.reference += block.reference;
    all.candidate += block.candidate;
    all.product += block.product;
    all.finite += block.finite;
  }
  return all;
}

template <class T>
OracleStats statistics(const Squares<T>& s, double reference_roundoff) {
  OracleStats out;
  const T o = std::sqrt(s.oracle), r = std::sqrt(s.reference), c = std::sqrt(s.candidate);
  const auto number = [](T numerator, T denominator) -> std::optional<double> {
    if (!(denominator > 0)) return std::nullopt;
    const auto value = static_cast<double>(numerator / denominator);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  out.reference_error = number(r, o);
  out.candidate_error = number(c, o);
  out.scale = static_cast<double>(o);
  out.reference_distance = static_cast<double>(r);
  out.candidate_distance = static_cast<double>(c);
  out.ratio = number(c, std::max<T>(r, kFloor * reference_roundoff * o));
  if (r > 0 && c > 0) out.correlation = std::clamp(static_cast<double>(s.product / (r * c)), -1.0, 1.0);
  return out;
}

bool in_range(double squares) { return squares == 0 || (squares > 1e-200 && squares < 1e300); }

}  // namespace

OracleStats measure_against_oracle(const at::Tensor& oracle, const at::Tensor& reference, const at::Tensor& candidate) {
  if (oracle.sizes() != reference.sizes() || oracle.sizes() != candidate.sizes())
    throw Error(fmt::format("cannot measure against an oracle of another shape: oracle {}, reference {}, candidate {}",
                            c10::str(oracle.sizes()), c10::str(reference.sizes()), c10::str(candidate.sizes())));
  const Three three{dense_reals(oracle, "oracle"), dense_reals(reference, "reference"),
                    dense_reals(candidate, "candidate")};
  if (three.oracle.sizes() != three.reference.sizes() || three.oracle.sizes() != three.candidate.sizes())
    throw Error("cannot measure complex against real tensors: oracle, reference and candidate must agree in that");
  const double roundoff = unit_roundoff(reference.scalar_type());
  const auto sums = squares<double>(three);
  // Squares of doubles that overflowed, or that may have vanished, are summed again in a wider type (see measure.cpp).
  if (in_range(sums.oracle) && in_range(sums.reference) && in_range(sums.candidate)) return statistics(sums, roundoff);
  return statistics(squares<long double>(three), roundoff);
}

}  // namespace parity
