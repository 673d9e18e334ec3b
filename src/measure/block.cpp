// The sums of one block of a pair of tensors.
#include "measure/blocks.hpp"
#include "measure/element_type.hpp"

namespace parity {
namespace {

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

/// Equal bits and ULP of the finite pairs left in `s`, when the candidate survives rounding to the reference's dtype.
template <class T>
void add_bits(at::ScalarType dtype, int64_t finite, const BlockScratch<T>& s, Totals<T>& out) {
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
bool all_finite(int64_t n, const BlockScratch<T>& s) {
  int special = 0;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i)
    special |= static_cast<int>(!(std::abs(s.reference[i]) <= std::numeric_limits<T>::max())) |
               static_cast<int>(!(std::abs(s.candidate[i]) <= std::numeric_limits<T>::max()));
  return special == 0;
}

/// Leaves the finite pairs in front, counts the others.
template <class T>
void set_specials_apart(int64_t n, bool floats, BlockScratch<T>& s, Totals<T>& out) {
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

/// Hands a kernel the room for the |d| that are kept; `keep` adds what it wrote.
template <class T>
class Keeping {
 public:
  explicit Keeping(BlockScratch<T>& s) : s_(s) {
    if (s.above) differences_ = {*s.above, s.kept.data() + s.kept_count, 0};
  }
  kernels::BlockDifferences* room() { return s_.above ? &differences_ : nullptr; }
  void keep() { s_.kept_count += differences_.count; }

 private:
  BlockScratch<T>& s_;
  kernels::BlockDifferences differences_;
};

void add_sums(int64_t n, BlockScratch<double>& s, Totals<double>& out) {
  Keeping keeping(s);
  set_sums(kernels::compare_block(s.reference.data(), s.candidate.data(), n, keeping.room()).sums, out);
  keeping.keep();
}

void add_sums(int64_t n, BlockScratch<long double>& s, Totals<long double>& out) {
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const long double r = s.reference[i], c = s.candidate[i], d = c - r, magnitude = std::abs(d);
    const auto narrow = static_cast<double>(magnitude);
    if (s.above && narrow > *s.above) s.kept[static_cast<size_t>(s.kept_count++)] = narrow;
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

kernels::BlockFigures in_place(at::ScalarType dtype, const void* r, const void* c, int64_t n,
                               kernels::BlockDifferences* differences) {
  const auto half = [](const void* p) { return static_cast<const uint16_t*>(p); };
  if (dtype == at::kFloat)
    return kernels::compare_block(static_cast<const float*>(r), static_cast<const float*>(c), n, differences);
  if (dtype == at::kBFloat16) return kernels::compare_block_bf16(half(r), half(c), n, differences);
  if (dtype == at::kHalf) return kernels::compare_block_fp16(half(r), half(c), n, differences);
  return kernels::compare_block(static_cast<const double*>(r), static_cast<const double*>(c), n, differences);
}

/// Same float on both sides, nothing special in the block: straight from memory, nothing copied.
bool fast_route(const at::Tensor& r, const at::Tensor& c, int64_t begin, int64_t n, BlockScratch<double>& s,
                Totals<double>& out) {
  const at::ScalarType dtype = r.scalar_type();
  if (dtype != c.scalar_type() ||
      (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf && dtype != at::kDouble))
    return false;
  Keeping keeping(s);
  const auto [sums, bits] = in_place(dtype, at_element(r, begin), at_element(c, begin), n, keeping.room());
  if (!std::isfinite(sums.sum_rr) || !std::isfinite(sums.sum_dd)) return false;  // a NaN or Inf, or an overflow
  set_sums(sums, out);
  keeping.keep();
  out.finite = n;
  out.zeros = bits.zeros;
  out.equal = bits.equal;
  out.max_ulp = bits.max_ulp;
  return true;
}
bool fast_route(const at::Tensor&, const at::Tensor&, int64_t, int64_t, BlockScratch<long double>&,
                Totals<long double>&) {
  return false;
}

}  // namespace

template <class T>
Totals<T> measure_block(const at::Tensor& reference, const at::Tensor& candidate, int64_t begin, int64_t n,
                        BlockScratch<T>& s) {
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

template Totals<double> measure_block(const at::Tensor&, const at::Tensor&, int64_t, int64_t, BlockScratch<double>&);
template Totals<long double> measure_block(const at::Tensor&, const at::Tensor&, int64_t, int64_t,
                                           BlockScratch<long double>&);

}  // namespace parity
