#include "bench/compare.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "bench/bandwidth.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "kernels/cuda/compare.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

/// Calls that together take long enough for the clock.
int calls_of(const std::function<void()>& work) {
  constexpr double kEnough = 1e-3;
  const double once = time_runs(work, 1).minimum();
  return static_cast<int>(std::clamp(kEnough / std::max(once, 1e-9), 1., 1e6));
}

struct Contestant {
  std::function<void()> work;
  double* seconds;  // the least so far
};

/// Turn by turn, so that a busy machine slows all of them down.
void time_in_turn(const std::vector<Contestant>& all, int repeats) {
  std::vector<int> calls;
  for (const auto& one : all) calls.push_back(calls_of(one.work));
  for (const auto& one : all) *one.seconds = std::numeric_limits<double>::infinity();
  for (int round = 0; round < repeats; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      const auto many = [&] {
        for (int call = 0; call < calls[i]; ++call) all[i].work();
      };
      *all[i].seconds = std::min(*all[i].seconds, time_runs(many, 0).first / calls[i]);
    }
}

/// What the others are held against. On a device without our kernels: a copy of half of it moves as many bytes.
std::function<void()> reading_of(const at::Tensor& reference, const at::Tensor& candidate) {
  const int64_t bytes = static_cast<int64_t>(reference.nbytes() + candidate.nbytes());
  if (reference.is_cpu()) return [both = std::make_shared<ReadOnly>(bytes)] { both->read(); };
  if (reference.is_cuda() && !kernels::cuda::architectures().empty())
    return [reference, candidate] {
      for (const at::Tensor& one : {reference, candidate})
        kernels::cuda::read(one.const_data_ptr(), static_cast<int64_t>(one.nbytes()), one.device().index());
    };
  return [reference, third = at::empty_like(reference)] {
    at::Tensor(third).copy_(reference).flatten()[reference.numel() - 1].item<double>();
  };
}

std::pair<at::Tensor, at::Tensor> random_pair(int64_t elements, at::ScalarType reference, at::ScalarType candidate) {
  const auto r = at::randn({elements}, at::kFloat).to(reference);
  return {r, (r.to(at::kFloat) + 1e-3 * at::randn({elements}, at::kFloat)).to(candidate)};
}

CompareBenchRow measure_row(const std::string& reference, const std::string& candidate, int64_t bytes,
                            const CompareBenchOptions& options) {
  const auto dtype = parse_dtype(reference), other = parse_dtype(candidate);
  CompareBenchRow row{reference, candidate, bytes / static_cast<int64_t>(c10::elementSize(dtype))};
  if (row.elements < 1) throw Error(fmt::format("[bench compare] {} bytes are less than one element", bytes));
  const auto pair = random_pair(row.elements, dtype, other);
  const auto r = pair.first.to(options.device), c = pair.second.to(options.device);
  row.bytes = static_cast<int64_t>(r.nbytes() + c.nbytes());
  time_in_turn({{reading_of(r, c), &row.reading},
                {[&] { measure_sums(r, c); }, &row.sums},
                {[&] { measure(r, c); }, &row.statistics},
                {[&] { at::isclose(r, dtype == other ? c : c.to(dtype)).all().item<bool>(); }, &row.torch_close}},
               options.repeats);
  return row;
}

}  // namespace

std::vector<CompareBenchRow> bench_compare(const CompareBenchOptions& options) {
  const at::NoGradGuard no_grad;
  at::manual_seed(0);
  std::vector<CompareBenchRow> rows;
  const auto all = static_cast<double>(options.dtypes.size() * options.bytes.size());
  for (const auto& dtype : options.dtypes)
    for (const int64_t bytes : options.bytes) {
      if (options.progress) options.progress(static_cast<double>(rows.size()) / all);
      rows.push_back(measure_row(dtype, options.candidate.empty() ? dtype : options.candidate, bytes, options));
    }
  if (options.progress) options.progress(1);
  return rows;
}

}  // namespace parity
