// What a file keeps of a tensor at the recording's level: a copy, statistics or a sketch. Private to parity_probe.hpp.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pack.hpp"
#include "sink.hpp"
#include "sketch.hpp"
#include "spares.hpp"
#include "statistics.hpp"
#include "types.hpp"
#include "workers.hpp"

namespace parity::probe {

struct Kept {
  Packed tensor;                       // without its elements when it is described …
  std::string statistics;              // … by these
  std::optional<TensorSketch> sketch;  // … or this
};

/// Thread-safe.
class Keeper {
 public:
  explicit Keeper(const Options& options)
      : statistics_(options.statistics_only),
        sketches_(options.sketches && !options.statistics_only),
        workers_(options.threaded ? options.threads : 1),
        spares_(options.queue_bytes) {}

  /// Of what `keep` will return.
  std::size_t bytes(const Sizes& shape, Dtype dtype, Role role, const Shards& shards) const {
    if (statistics_) return 0;
    const std::size_t buckets = buckets_for(shape, dtype, role, shards);
    return buckets > 0 ? buckets * sizeof(double) : packed_bytes(shape, dtype);
  }

  /// A tensor is described where it lies, without a copy: statistics, which do not ask for the order of the elements,
  /// when these lie together, a sketch when they do so in row-major order.
  Kept keep(const void* data, const Sizes& shape, Dtype dtype, Role role, const Sizes& strides, const Shards& shards) {
    const std::size_t buckets = buckets_for(shape, dtype, role, shards);
    if (!statistics_ && buckets == 0) return {copied(data, shape, dtype, strides), {}, {}};
    const DefaultArithmetic arithmetic;  // of the printing, too
    const std::vector<std::int64_t> plain = row_major(shape), given = strides.size() == 0 ? plain : strides.vector();
    const bool as_it_lies = same_layout(shape, plain, given) || (statistics_ && dense(shape, given));
    Packed copy = as_it_lies ? Packed() : copied(data, shape, dtype, strides);
    const char* elements = as_it_lies ? static_cast<const char*>(data) : copy.bytes.data();
    Kept kept;
    kept.tensor.dtype = dtype, kept.tensor.shape = shape.vector();
    if (statistics_)
      kept.statistics = statistics_of(elements, dtype, static_cast<std::size_t>(shape.elements()), workers_).json();
    else
      kept.sketch.emplace(elements, dtype, kept.tensor.shape, shards, buckets, workers_, places_);
    give_back(copy);
    return kept;
  }

  /// Has been written.
  void give_back(Packed& tensor) { spares_.give(std::exchange(tensor.bytes, Buffer())); }

 private:
  Packed copied(const void* data, const Sizes& shape, Dtype dtype, const Sizes& strides) {
    return pack(data, shape, dtype, strides, spares_.take(packed_bytes(shape, dtype)));
  }

  // 0: no sketch.
  std::size_t buckets_for(const Sizes& shape, Dtype dtype, Role role, const Shards& shards) const {
    if (!sketches_) return 0;
    std::int64_t count = dtype.kind == Kind::complex ? 2 : 1;
    for (const std::int64_t size : TensorSketch::whole_shape(shape.vector(), shards)) count *= size;
    const std::size_t buckets = sketch_buckets(count, role);
    const bool smaller = packed_bytes(shape, dtype) <= buckets * sizeof(double);
    return smaller && shards.empty() && role != Role::weight ? 0 : buckets;
  }

  const bool statistics_, sketches_;
  Workers workers_;
  Places places_;
  Spares spares_;
};

}  // namespace parity::probe
