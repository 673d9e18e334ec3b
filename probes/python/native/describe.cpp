// What parity_probe.native (Python) loads where it is there: statistics and sketches of whole arrays by the code of the
// C++ recorder, which goes over a tensor once where numpy does so several times. An interface of C, of which no
// exception comes out; whoever changes it changes kInterface, here and there.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "parity_probe/elements.hpp"
#include "parity_probe/sketch.hpp"
#include "parity_probe/statistics.hpp"
#include "parity_probe/types.hpp"
#include "parity_probe/words.hpp"
#include "parity_probe/workers.hpp"

#if defined(_WIN32)
#define PARITY_PROBE_API extern "C" __declspec(dllexport)
#else
#define PARITY_PROBE_API extern "C" __attribute__((visibility("default")))
#endif

namespace {

using namespace parity::probe;

constexpr int kInterface = 1;
enum Outcome : int { kDone = 0, kUnknown = 1, kFailed = 2 };  // kUnknown: an element type, or that many buckets
enum Fits : int { kSingle = 1, kHalf = 2, kBrain = 4 };

/// Threads and hashed places, kept between the calls. Thread-safe.
class Describer {
 public:
  /// As many threads with the caller's; 0: as Workers has it.
  std::shared_ptr<Workers> workers(std::size_t threads) {
    const std::lock_guard lock(mutex_);
    if (workers_ == nullptr || threads != threads_) {
      workers_ = std::make_shared<Workers>(std::min(threads, Workers::kMost));  // whoever still uses others keeps them
      threads_ = threads;
    }
    return workers_;
  }

  Places places;

 private:
  std::mutex mutex_;
  std::size_t threads_ = 0;
  std::shared_ptr<Workers> workers_;
};

const Dtype* dtype_named(const char* name) {
  static constexpr Dtype kKnown[] = {f32, bf16, f16, f64, f8_e4m3, f8_e5m2, i64, i32, i16,
                                     i8,  u64,  u32, u16, u8,      boolean, c64, c128};
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Dtype& one) { return std::string_view(one.name) == name; });
  return found != std::end(kKnown) ? found : nullptr;
}

template <class Step>
int guarded(Step step) noexcept {
  try {
    const DefaultArithmetic arithmetic;
    step();
    return kDone;
  } catch (...) {  // memory, threads
    return kFailed;
  }
}

}  // namespace

/// FORMAT.md, `stats`; of elements of which none is finite the numbers mean nothing.
struct ParityProbeStatistics {
  std::int64_t count, nan, infinite, zero;
  double mean, deviation, mean_abs, minimum, maximum;
};

/// FORMAT.md, "Sketches"; `fits` of Fits. `words`: see words_of.
struct ParityProbeSketch {
  std::int64_t count, nan, infinite, zero;
  double sum, squares, minimum, maximum;
  std::uint64_t specials, words;
  int fits;
};

PARITY_PROBE_API int parity_probe_interface() { return kInterface; }

/// What the other functions take; null without memory.
PARITY_PROBE_API void* parity_probe_open() { return new (std::nothrow) Describer; }

PARITY_PROBE_API void parity_probe_close(void* describer) { delete static_cast<Describer*>(describer); }

/// Of `count` elements that lie together, in any order. `dtype`: torch's name.
PARITY_PROBE_API int parity_probe_statistics(void* describer, std::size_t threads, const char* dtype, const char* data,
                                             std::size_t count, ParityProbeStatistics* out) {
  const Dtype* type = dtype_named(dtype);
  if (type == nullptr) return kUnknown;
  return guarded([&] {
    const auto workers = static_cast<Describer*>(describer)->workers(threads);
    Statistics found = statistics_of(data, *type, count, *workers);
    if (found.minimum == found.maximum)  // exactly: the mean of many equal numbers is rounded
      found.mean = found.minimum, found.mean_abs = std::abs(found.mean), found.deviations = 0;
    const double deviation = std::sqrt(found.deviations / static_cast<double>(found.finite()));
    *out = {found.count, found.nan,      found.infinite, found.zero,   found.mean,
            deviation,   found.mean_abs, found.minimum,  found.maximum};
  });
}

/// Of `count` elements in row-major order, in so many `buckets`, a power of two up to 4096.
PARITY_PROBE_API int parity_probe_sketch(void* describer, std::size_t threads, const char* dtype, const char* data,
                                         std::size_t count, bool with_words, std::size_t buckets, double* out_buckets,
                                         ParityProbeSketch* out) {
  const Dtype* type = dtype_named(dtype);
  if (type == nullptr || buckets == 0 || buckets > SketchSums::kMost || (buckets & (buckets - 1)) != 0) return kUnknown;
  return guarded([&] {
    auto* const own = static_cast<Describer*>(describer);
    const TensorSketch sketch(data, *type, {static_cast<std::int64_t>(count)}, {}, buckets, *own->workers(threads),
                              own->places, with_words);
    const SketchSums& s = sketch.sums();
    std::copy(sketch.buckets().begin(), sketch.buckets().end(), out_buckets);
    const int fits = s.single * kSingle + s.half * kHalf + s.brain * kBrain;
    *out = {s.count, s.nan, s.infinite, s.zero, s.sum, s.squares, s.minimum, s.maximum, s.specials, s.words, fits};
  });
}

/// The `words` that a sketch of these elements would have.
PARITY_PROBE_API int parity_probe_words(void* describer, std::size_t threads, const char* dtype, const char* data,
                                        std::size_t count, std::uint64_t* out) {
  const Dtype* type = dtype_named(dtype);
  if (type == nullptr) return kUnknown;
  return guarded([&] {
    constexpr std::size_t kBlock = SketchSums::kBlock, kPart = kBlock * 64;
    const auto [parts, number] = numbers_of(*type);
    const std::size_t size = number.size, all = count * parts;
    std::atomic<std::uint64_t> sum{0};
    static_cast<Describer*>(describer)->workers(threads)->each((all + kPart - 1) / kPart, [&](std::size_t part) {
      for (std::size_t i = part * kPart; i < std::min(all, (part + 1) * kPart); i += kBlock)
        sum += words_of(data + i * size, std::min(kBlock, all - i) * size, i);
    });
    *out = sum;
  });
}
