#include "bench/attention.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/memory.hpp"
#include "ops/attention.hpp"

namespace parity {
namespace {

constexpr int64_t kTemporal = 4, kSpatial = 16;  // of the autoencoder, and its patches of 2 x 2
constexpr int64_t kProduct = 2048;               // rows and columns of the product that rates are measured with
constexpr int64_t kRowsChecked = 64;
constexpr double kMemoryShare = .5;  // of what is free that a run may take
constexpr std::array kVariants{"full", "tiled", "fused"};

struct Inputs {
  at::Tensor q, k, v;  // (1, tokens, heads, width)
};

int64_t tokens_of(const AttentionBenchOptions& o, int64_t frames) {
  const int64_t tokens = ((frames - 1) / kTemporal + 1) * (o.height / kSpatial) * (o.width / kSpatial);
  if (tokens < 1) throw Error(fmt::format("{} frames of {}x{} have no token", frames, o.height, o.width));
  return tokens;
}

at::Tensor full(const Inputs& in) {
  const at::Tensor q = in.q.transpose(1, 2), k = in.k.transpose(1, 2), v = in.v.transpose(1, 2);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  return at::matmul(at::softmax(at::matmul(q * scale, k.transpose(-2, -1)), -1), v);
}

at::Tensor run(const std::string& variant, const Inputs& in) {
  if (variant == "full") return full(in);
  return variant == "tiled" ? ops::own_attention(in.q, in.k, in.v, {}) : ops::attention(in.q, in.k, in.v, {});
}

double operations(int64_t heads, int64_t tokens, int64_t width) {
  return 4. * static_cast<double>(heads) * static_cast<double>(tokens) * static_cast<double>(tokens) *
         static_cast<double>(width);
}

// Some rows of the first head, in fp64.
double error_of(const at::Tensor& out, const Inputs& in) {
  const auto head = [](const at::Tensor& t) { return t.select(0, 0).select(1, 0).to(at::kDouble); };
  const int64_t step = std::max<int64_t>(1, in.q.size(1) / kRowsChecked);
  const auto some = [step](const at::Tensor& rows) { return rows.slice(0, 0, rows.size(0), step); };
  const at::Tensor q = some(head(in.q)), k = head(in.k), v = head(in.v);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(1)));
  const at::Tensor want = at::mm(at::softmax(at::mm(q, k.t()) * scale, -1), v);
  const at::Tensor got = some(out.select(0, 0).select(0, 0)).to(at::kDouble);
  return ((got - want).norm() / want.norm()).item<double>();
}

class Bench {
 public:
  explicit Bench(const AttentionBenchOptions& options) : options_(options) {}

  AttentionBench run_all() {
    const double all = static_cast<double>(options_.dtypes.size() * options_.frames.size());
    for (const std::string& name : options_.dtypes) {
      const at::ScalarType dtype = name == "bf16" ? at::kBFloat16 : at::kFloat;
      made_.product_rates.push_back(product_rate(dtype));
      for (const int64_t frames : options_.frames) {
        if (options_.progress) options_.progress(done_ / all);
        side_by_side(frames, name, dtype);
        ++done_;
      }
    }
    if (options_.progress) options_.progress(1);
    return std::move(made_);
  }

 private:
  // As many heads as the time and the memory allow; 0 where one is too many.
  int64_t heads_for(const std::string& variant, int64_t tokens, at::ScalarType dtype) const {
    const double one = operations(1, tokens, options_.head_width) / made_.product_rates.back();
    int64_t heads = std::clamp<int64_t>(static_cast<int64_t>(options_.most / one), 1, options_.heads);
    const auto bytes = [&](int64_t n) {
      return static_cast<double>(attention_bytes(variant, n, tokens, options_.head_width, dtype));
    };
    while (heads > 0 && bytes(heads) > kMemoryShare * static_cast<double>(free_memory())) --heads;
    return heads;
  }

  void side_by_side(int64_t frames, const std::string& name, at::ScalarType dtype) {
    const int64_t tokens = tokens_of(options_, frames);
    std::vector<AttentionBenchRow> rows;
    std::vector<Inputs> inputs;
    for (const char* variant : kVariants) {
      AttentionBenchRow row;
      row.frames = frames;
      row.tokens = tokens;
      row.variant = variant;
      row.dtype = name;
      row.heads_run = heads_for(variant, tokens, dtype);
      const auto bytes = [&](int64_t heads) {
        return attention_bytes(variant, heads, tokens, options_.head_width, dtype);
      };
      row.computed_bytes = bytes(row.heads_run);
      row.computed_bytes_of_all = bytes(options_.heads);
      const auto random = [&] { return at::randn({1, tokens, row.heads_run, options_.head_width}).to(dtype); };
      inputs.push_back(row.heads_run > 0 ? Inputs{random(), random(), random()} : Inputs{});
      rows.push_back(std::move(row));
    }
    for (int turn = 0; turn <= options_.repeats; ++turn)
      for (size_t i = 0; i < rows.size(); ++i)
        if (rows[i].heads_run > 0) once(rows[i], inputs[i], turn);
    for (AttentionBenchRow& row : rows) finish(std::move(row));
  }

  static void once(AttentionBenchRow& row, const Inputs& in, int turn) {
    at::Tensor out;
    const GrownMemory grown;
    const Timing timing = time_runs([&] { out = run(row.variant, in); }, 0);
    if (turn == 0) {
      row.peak_bytes = grown.peak();
      row.timing.first = timing.first;
      row.error = error_of(out, in);
    } else {
      row.timing.seconds.push_back(timing.first);
    }
  }

  void finish(AttentionBenchRow row) {
    if (row.heads_run > 0) {
      row.seconds = row.timing.median() * static_cast<double>(options_.heads) / static_cast<double>(row.heads_run);
      row.product_share =
          operations(options_.heads, row.tokens, options_.head_width) / row.seconds / made_.product_rates.back();
    }
    made_.rows.push_back(std::move(row));
  }

  const AttentionBenchOptions& options_;
  AttentionBench made_;
  double done_ = 0;
};

}  // namespace

int64_t attention_bytes(const std::string& variant, int64_t heads, int64_t tokens, int64_t head_width,
                        at::ScalarType dtype) {
  const auto element = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t result = heads * tokens * head_width * element;
  if (variant == "full") return 2 * heads * tokens * tokens * element + 2 * result;  // the scaled queries, too
  constexpr int64_t kTile = 256 * 128 + 2 * 128 * 128 + 2 * 256 * 128;               // numbers a thread: 256 by 128
  const int64_t tiles = at::get_num_threads() * kTile * static_cast<int64_t>(sizeof(float));
  // the fused kernel keeps a logarithm a row
  return tiles + result + (variant == "fused" ? heads * tokens * static_cast<int64_t>(sizeof(float)) : 0);
}

// Growing until one takes long enough: of a dtype that the CPU has no kernel for (bf16 on a Zen 1: 1 GFLOP/s) the whole
// size takes minutes.
double product_rate(at::ScalarType dtype) {
  constexpr double kLongEnough = .1;  // seconds
  for (int64_t size = kProduct / 8;; size *= 2) {
    const at::Tensor a = at::randn({size, size}).to(dtype), b = at::randn({size, size}).to(dtype);
    const double seconds = time_runs([&] { at::mm(a, b); }, size < kProduct ? 1 : 3).minimum();
    if (size >= kProduct || seconds > kLongEnough) return 2. * static_cast<double>(size * size * size) / seconds;
  }
}

AttentionBench bench_attention(const AttentionBenchOptions& options) { return Bench(options).run_all(); }

}  // namespace parity
