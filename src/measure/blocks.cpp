#include "measure/blocks.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "measure/ranks.hpp"

namespace parity {
namespace {

constexpr int64_t kThreadShare = 64 * kBlock;  // what one thread takes at a time

/// Calls f with a null pointer of the C++ type of `dtype`.
template <class F>
void with_type(at::ScalarType dtype, F&& f) {
  switch (dtype) {
    case at::kDouble:
      return f(static_cast<const double*>(nullptr));
    case at::kFloat:
      return f(static_cast<const float*>(nullptr));
    case at::kHalf:
      return f(static_cast<const at::Half*>(nullptr));
    case at::kBFloat16:
      return f(static_cast<const at::BFloat16*>(nullptr));
    case at::kFloat8_e4m3fn:
      return f(static_cast<const at::Float8_e4m3fn*>(nullptr));
    case at::kFloat8_e5m2:
      return f(static_cast<const at::Float8_e5m2*>(nullptr));
    case at::kLong:
      return f(static_cast<const int64_t*>(nullptr));
    case at::kInt:
      return f(static_cast<const int32_t*>(nullptr));
    case at::kShort:
      return f(static_cast<const int16_t*>(nullptr));
    case at::kChar:
      return f(static_cast<const int8_t*>(nullptr));
    case at::kByte:
      return f(static_cast<const uint8_t*>(nullptr));
    case at::kUInt16:
      return f(static_cast<const uint16_t*>(nullptr));
    case at::kUInt32:
      return f(static_cast<const uint32_t*>(nullptr));
    case at::kUInt64:
      return f(static_cast<const uint64_t*>(nullptr));
    case at::kBool:
      return f(static_cast<const bool*>(nullptr));
    default:
      throw Error(
          fmt::format("cannot compare tensors of dtype {}: convert them before comparing", c10::toString(dtype)));
  }
}

template <class T, class S>
T as(S value) {
  if constexpr (std::is_arithmetic_v<S>)
    return static_cast<T>(value);
  else
    return static_cast<T>(static_cast<float>(value));  // the narrow floats are exact in fp32
}

bool has_ulp(at::ScalarType dtype) { return at::isFloatingType(dtype); }

/// `r` and `c` hold n elements of `dtype`.
kernels::BlockBits compare_bits(at::ScalarType dtype, const void* r, const void* c, int64_t n) {
  const auto run = [&]<class U>(U) {
    return kernels::block_bits(static_cast<const U*>(r), static_cast<const U*>(c), n);
  };
  switch (c10::elementSize(dtype)) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    default:
      return run(uint64_t{});
  }
}

const char* at_element(const at::Tensor& t, int64_t begin) {
  return static_cast<const char*>(t.const_data_ptr()) + begin * t.element_size();
}

/// Equal bits and ULP of the finite pairs left in `s`, when the candidate survives rounding to the reference's dtype.
template <class T>
void add_bits(at::ScalarType dtype, int64_t finite, const Scratch<T>& s, Totals<T>& out) {
  with_type(dtype, [&]<class S>(const S*) {
    if constexpr (!std::is_integral_v<S>) {
      std::array<S, kBlock> r{}, c{};
      for (size_t i = 0; i < static_cast<size_t>(finite); ++i) {
        r[i] = as<S>(s.reference[i]);
        c[i] = as<S>(s.candidate[i]);
        if (as<T>(c[i]) != s.candidate[i]) out.bits_known = false;
      }
      if (!out.bits_known) return;
      const auto bits = compare_bits(dtype, r.data(), c.data(), finite);
      out.max_ulp = bits.max_ulp;
      out.equal += bits.equal;
    }
  });
}

enum class ValueClass { finite, nan, plus, minus };
template <class T>
ValueClass classify(T x) {
  if (std::isfinite(x)) return ValueClass::finite;
  return std::isnan(x) ? ValueClass::nan : x > 0 ? ValueClass::plus : ValueClass::minus;
}

/// A loop that vectorises: most blocks need nothing more.
template <class T>
bool all_finite(int64_t n, const Scratch<T>& s) {
  int special = 0;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i)
    special |= static_cast<int>(!(std::abs(s.reference[i]) <= std::numeric_limits<T>::max())) |
               static_cast<int>(!(std::abs(s.candidate[i]) <= std::numeric_limits<T>::max()));
  return special == 0;
}

/// Leaves the finite pairs in front, counts the others.
template <class T>
void set_specials_apart(int64_t n, bool floats, Scratch<T>& s, Totals<T>& out) {
  s.compacted = false;
  out.finite = n;
  if (all_finite(n, s)) {
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) out.zeros += s.reference[i] == 0;
    return;
  }
  size_t kept = 0;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const T r = s.reference[i], c = s.candidate[i];
    out.zeros += r == 0;
    const ValueClass kind_r = classify(r), kind_c = classify(c);
    if (kind_r == ValueClass::finite && kind_c == ValueClass::finite) {
      s.position[kept] = static_cast<int32_t>(i);
      s.reference[kept] = r;
      s.candidate[kept] = c;
      ++kept;
      continue;
    }
    out.special_reference += kind_r != ValueClass::finite;
    out.special_candidate += kind_c != ValueClass::finite;
    out.special_mismatch += kind_r != kind_c;
    out.equal += kind_r == kind_c && floats;  // NaN equals NaN whatever its payload
  }
  out.finite = static_cast<int64_t>(kept);
  s.compacted = true;
}

void set_sums(const kernels::BlockSums& sums, Totals<double>& out) {
  out.max_d = sums.max_d;
  out.sum_d = sums.sum_d;
  out.sum_dd = sums.sum_dd;
  out.sum_r = sums.sum_r;
  out.sum_rr = sums.sum_rr;
  out.sum_dr = sums.sum_dr;
  // c = r + d. Cancels when the candidate is far smaller than the reference: measure() then takes the wide route.
  out.sum_cc = sums.sum_rr + 2 * sums.sum_dr + sums.sum_dd;
  out.sum_rc = sums.sum_rr + sums.sum_dr;
}

void add_sums(int64_t n, Scratch<double>& s, Totals<double>& out) {
  set_sums(kernels::block_sums_fp64(s.reference.data(), s.candidate.data(), n, s.abs_d.data()), out);
}

void add_sums(int64_t n, Scratch<long double>& s, Totals<long double>& out) {
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const long double r = s.reference[i], c = s.candidate[i], d = c - r, magnitude = std::abs(d);
    s.abs_d[i] = static_cast<double>(magnitude);
    out.max_d = std::max(out.max_d, magnitude);
    out.sum_d += magnitude;
    out.sum_dd += d * d;
    out.sum_r += std::abs(r);
    out.sum_rr += r * r;
    out.sum_cc += c * c;
    out.sum_rc += r * c;
    out.sum_dr += d * r;
  }
}

kernels::BlockSums sums_in_place(at::ScalarType dtype, const void* r, const void* c, int64_t n, double* abs_d) {
  const auto half = [](const void* p) { return static_cast<const uint16_t*>(p); };
  if (dtype == at::kFloat)
    return kernels::block_sums_fp32(static_cast<const float*>(r), static_cast<const float*>(c), n, abs_d);
  if (dtype == at::kBFloat16) return kernels::block_sums_bf16(half(r), half(c), n, abs_d);
  if (dtype == at::kHalf) return kernels::block_sums_fp16(half(r), half(c), n, abs_d);
  return kernels::block_sums_fp64(static_cast<const double*>(r), static_cast<const double*>(c), n, abs_d);
}

/// Same float on both sides, nothing special in the block: straight from memory, nothing copied.
bool fast_route(const at::Tensor& r, const at::Tensor& c, int64_t begin, int64_t n, Scratch<double>& s,
                Totals<double>& out) {
  const at::ScalarType dtype = r.scalar_type();
  if (dtype != c.scalar_type() ||
      (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf && dtype != at::kDouble))
    return false;
  const void *pr = at_element(r, begin), *pc = at_element(c, begin);
  const auto sums = sums_in_place(dtype, pr, pc, n, s.abs_d.data());
  if (!std::isfinite(sums.sum_rr) || !std::isfinite(sums.sum_dd)) return false;  // a NaN or Inf, or an overflow
  set_sums(sums, out);
  const auto bits = compare_bits(dtype, pr, pc, n);
  out.finite = n;
  out.zeros = bits.zeros;
  out.equal = bits.equal;
  out.max_ulp = bits.max_ulp;
  s.compacted = false;
  return true;
}
bool fast_route(const at::Tensor&, const at::Tensor&, int64_t, int64_t, Scratch<long double>&, Totals<long double>&) {
  return false;
}

}  // namespace

at::Tensor dense_reals(const at::Tensor& tensor, const char* side) {
  if (!tensor.defined()) throw Error(fmt::format("{} tensor is undefined: nothing to compare", side));
  if (tensor.layout() != at::kStrided)
    throw Error(
        fmt::format("{} tensor has layout {}: make it dense before comparing", side, c10::str(tensor.layout())));
  dtype_name(tensor.scalar_type());  // throws on a dtype unknown to the project
  at::Tensor t = tensor.detach().cpu().resolve_conj().resolve_neg();
  if (t.scalar_type() == at::kComplexHalf) t = t.to(at::kComplexFloat);
  if (t.is_complex()) t = at::view_as_real(t);
  return t.contiguous();
}

template <class T>
void load(const at::Tensor& dense, int64_t begin, int64_t n, T* out) {
  with_type(dense.scalar_type(), [&]<class S>(const S*) {
    const S* in = static_cast<const S*>(dense.const_data_ptr()) + begin;
    for (int64_t i = 0; i < n; ++i) out[i] = as<T>(in[i]);
  });
}

template <class T>
void Totals<T>::merge(const Totals& later) {
  if (later.worst_block >= 0 && (worst_block < 0 || later.max_d > max_d)) {
    max_d = later.max_d;
    worst_block = later.worst_block;
  }
  for (auto [mine, other] : {std::pair{&sum_d, later.sum_d},
                             {&sum_dd, later.sum_dd},
                             {&sum_r, later.sum_r},
                             {&sum_rr, later.sum_rr},
                             {&sum_cc, later.sum_cc},
                             {&sum_rc, later.sum_rc},
                             {&sum_dr, later.sum_dr}})
    *mine += other;
  for (auto [mine, other] : {std::pair{&finite, later.finite},
                             {&special_reference, later.special_reference},
                             {&special_candidate, later.special_candidate},
                             {&special_mismatch, later.special_mismatch},
                             {&zeros, later.zeros},
                             {&equal, later.equal}})
    *mine += other;
  max_ulp = std::max(max_ulp, later.max_ulp);
  bits_known = bits_known && later.bits_known;
}

template <class T>
Totals<T> measure_block(const at::Tensor& reference, const at::Tensor& candidate, int64_t begin, int64_t n,
                        Scratch<T>& s) {
  Totals<T> out;
  if (!fast_route(reference, candidate, begin, n, s, out)) {
    load(reference, begin, n, s.reference.data());
    load(candidate, begin, n, s.candidate.data());
    const bool floats = has_ulp(reference.scalar_type()) && has_ulp(candidate.scalar_type());
    set_specials_apart(n, floats, s, out);
    if (floats) {
      add_bits(reference.scalar_type(), out.finite, s, out);
    } else {
      out.bits_known = reference.scalar_type() == candidate.scalar_type();
      for (size_t i = 0; i < static_cast<size_t>(out.finite); ++i) out.equal += s.reference[i] == s.candidate[i];
    }
    add_sums(out.finite, s, out);
  }
  if (out.finite > 0) out.worst_block = begin;
  return out;
}

template <class T>
Totals<T> measure_blocks(const at::Tensor& reference, const at::Tensor& candidate, DifferenceRanks* ranks) {
  const int64_t n = reference.numel(), chunks = (n + kThreadShare - 1) / kThreadShare;
  std::vector<Totals<T>> per_chunk(static_cast<size_t>(chunks));
  if (ranks) ranks->prepare(reference, candidate, chunks);
  at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    const auto scratch = std::make_unique<Scratch<T>>();
    for (int64_t chunk = first; chunk < last; ++chunk)
      for (int64_t begin = chunk * kThreadShare, end = std::min(n, begin + kThreadShare); begin < end;
           begin += kBlock) {
        const auto block = measure_block(reference, candidate, begin, std::min(kBlock, end - begin), *scratch);
        per_chunk[static_cast<size_t>(chunk)].merge(block);
        if (ranks) ranks->see(chunk, scratch->abs_d.data(), block.finite);
      }
  });
  Totals<T> all;
  for (const auto& chunk : per_chunk) all.merge(chunk);
  return all;
}

void visit_differences(const at::Tensor& reference, const at::Tensor& candidate, bool wide,
                       const std::function<void(int64_t, const double*, int64_t)>& visit) {
  const int64_t blocks = (reference.numel() + kBlock - 1) / kBlock;
  const auto run = [&]<class T>(T) {
    at::parallel_for(0, kTasks, 1, [&](int64_t first, int64_t last) {
      const auto scratch = std::make_unique<Scratch<T>>();
      for (int64_t task = first; task < last; ++task)
        for (int64_t b = blocks * task / kTasks; b < blocks * (task + 1) / kTasks; ++b) {
          const int64_t n = std::min(kBlock, reference.numel() - b * kBlock);
          const auto totals = measure_block(reference, candidate, b * kBlock, n, *scratch);
          visit(task, scratch->abs_d.data(), totals.finite);
        }
    });
  };
  wide ? run(0.0L) : run(0.0);
}

template void load(const at::Tensor&, int64_t, int64_t, double*);
template void load(const at::Tensor&, int64_t, int64_t, long double*);
template struct Totals<double>;
template struct Totals<long double>;
template Totals<double> measure_block(const at::Tensor&, const at::Tensor&, int64_t, int64_t, Scratch<double>&);
template Totals<long double> measure_block(const at::Tensor&, const at::Tensor&, int64_t, int64_t,
                                           Scratch<long double>&);
template Totals<double> measure_blocks(const at::Tensor&, const at::Tensor&, DifferenceRanks*);
template Totals<long double> measure_blocks(const at::Tensor&, const at::Tensor&, DifferenceRanks*);

}  // namespace parity
