// What a recording of sketches keeps of a tensor (FORMAT.md, "Sketches"): a CountSketch and exact statistics.
#pragma once
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sketch_sums.hpp"
#include "text.hpp"
#include "workers.hpp"

namespace parity::probe {

/// Numbers that an element has, and the type of one.
inline std::pair<std::size_t, Dtype> numbers_of(Dtype dtype) {
  if (dtype.kind != Kind::complex) return {1, dtype};
  return {2, dtype.size == c64.size ? f32 : f64};
}

/// The array is the part of a larger tensor that begins at `offset` of `axis`, where that tensor's size is `total`.
struct Shard {
  std::size_t axis = 0;
  std::int64_t offset = 0, total = 0;
};
using Shards = std::vector<Shard>;  // one for each axis that is split; empty: the array is the whole

class TensorSketch {
 public:
  /// Of a row-major tensor. `buckets`: see `sketch_buckets`. The shards lie inside their whole (see `whole_shape`).
  /// `with_words`: so that `sums` has those, too.
  TensorSketch(const char* data, Dtype dtype, std::vector<std::int64_t> shape, const Shards& shards,
               std::size_t buckets, Workers& workers, Places& places, bool with_words = false)
      : buckets_(buckets), shape_(std::move(shape)), sums_(dtype, with_words) {
    start_.assign(shape_.size(), 0), whole_ = whole_shape(shape_, shards);
    for (const Shard& s : shards) start_[s.axis] = s.offset;
    const auto [parts, number] = numbers_of(dtype);
    if (shape_ == whole_)
      add_whole(data, dtype, number, elements(shape_) * parts, workers, places, with_words);
    else
      add_rows(data, number, parts, places);
  }

  /// Sizes of the whole. Throws std::invalid_argument when a shard does not lie in it.
  static std::vector<std::int64_t> whole_shape(std::vector<std::int64_t> shape, const Shards& shards) {
    for (const Shard& s : shards) {
      if (s.axis >= shape.size() || s.offset < 0 || s.offset > s.total - shape[s.axis])
        throw std::invalid_argument("parity_probe: a shard that does not lie in its whole");
      shape[s.axis] = s.total;
    }
    return shape;
  }

  const std::vector<double>& buckets() const { return buckets_; }
  const SketchSums& sums() const { return sums_; }

  /// The event's `sketch`; the buckets are value `key`.
  std::string json(const std::string& key) const {
    char hash[20];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(sums_.specials));
    std::string text = "{\"version\":1,\"k\":\"" + key + "\",\"count\":" + std::to_string(sums_.count) +
                       ",\"nan\":" + std::to_string(sums_.nan) + ",\"inf\":" + std::to_string(sums_.infinite) +
                       ",\"zero\":" + std::to_string(sums_.zero) + ",\"sum\":" + number(sums_.sum) +
                       ",\"sum_squares\":" + number(sums_.squares) + ",\"min\":" + number(sums_.minimum) +
                       ",\"max\":" + number(sums_.maximum) + ",\"specials\":\"" + hash + "\",\"fits\":[" + fits() + "]";
    if (shape_ != whole_)
      text += ",\"part\":{\"start\":" + list_of(start_) +
              ",\"step\":" + list_of(std::vector<std::int64_t>(shape_.size(), 1)) + ",\"size\":" + list_of(shape_) +
              "}";
    return text + "}";
  }

 private:
  static std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", x);
    return std::isfinite(x) ? text : "null";
  }

  static std::size_t elements(const std::vector<std::int64_t>& shape) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    return count;
  }

  // In parts of one size, 64 of them at most, so that the sums are the same for any number of threads.
  void add_whole(const char* data, Dtype dtype, Dtype number, std::size_t count, Workers& workers, Places& places,
                 bool with_words) {
    const std::size_t least = std::size_t{1} << 18, part = (count / 64 / least + 1) * least;
    std::vector<SketchSums> parts;
    for (std::size_t first = 0; first < count; first += part) parts.emplace_back(dtype, with_words).reserve();
    workers.each(parts.size(), [&](std::size_t i) {
      parts[i].clear();
      parts[i].add(data + i * part * number.size, number, i * part, std::min(part, count - i * part), places);
    });
    for (const SketchSums& one : parts) sums_.join(one), one.add_to(buckets_);
  }

  // Row by row: elements of the last axis lie together in the whole.
  void add_rows(const char* data, Dtype number, std::size_t parts, Places& places) {
    const std::size_t rank = shape_.size(), row = static_cast<std::size_t>(shape_[rank - 1]);
    std::vector<std::int64_t> at(rank, 0);
    sums_.reserve(), sums_.clear();
    for (std::size_t left = elements(shape_); left > 0; left -= row) {
      std::int64_t place = 0;
      for (std::size_t a = 0; a < rank; ++a) place = place * whole_[a] + start_[a] + at[a];
      sums_.add(data, number, static_cast<std::uint64_t>(place) * parts, row * parts, places);
      data += row * parts * number.size;
      for (std::size_t a = rank; a-- > 1 && ++at[a - 1] == shape_[a - 1];) at[a - 1] = 0;
    }
    sums_.add_to(buckets_);
  }

  std::string fits() const {
    std::string text;
    for (const auto& [holds, name] :
         {std::pair{sums_.single, "float32"}, {sums_.half, "float16"}, {sums_.brain, "bfloat16"}})
      if (holds) text += (text.empty() ? "\"" : ",\"") + std::string(name) + "\"";
    return text;
  }

  std::vector<double> buckets_;
  std::vector<std::int64_t> shape_, start_, whole_;
  SketchSums sums_;
};

/// Buckets for a tensor of `count` numbers: a power of two, one per 512, 512 to 4096; of a weight at most half as many
/// as numbers, so that it cannot be read back.
inline std::size_t sketch_buckets(std::int64_t count, Role role) {
  std::size_t buckets = 512;
  while (buckets < 4096 && static_cast<std::int64_t>(buckets) * 1024 <= count) buckets *= 2;
  while (role == Role::weight && buckets > 1 && static_cast<std::int64_t>(buckets) * 2 > count) buckets /= 2;
  return buckets;
}

}  // namespace parity::probe
