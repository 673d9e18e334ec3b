// What a recording of sketches keeps of a tensor (FORMAT.md, "Sketches"): a CountSketch and exact statistics.
#pragma once
#include <array>

#include "statistics.hpp"
#include "text.hpp"

namespace parity::probe {

/// The array is the part of a larger tensor that begins at `offset` of `axis`, where that tensor's size is `total`.
struct Shard {
  std::size_t axis = 0;
  std::int64_t offset = 0, total = 0;
};
using Shards = std::vector<Shard>;  // one for each axis that is split; empty: the array is the whole

class TensorSketch {
 public:
  /// `buckets`: see `sketch_buckets`. The shards lie inside their whole (see `whole_shape`).
  TensorSketch(const Packed& tensor, const Shards& shards, std::size_t buckets)
      : buckets_(buckets), parts_(tensor.dtype.kind == Kind::complex ? 2 : 1) {
    const bool real = tensor.dtype.kind == Kind::real && tensor.dtype.size >= 4;
    half_ = brain_ = real, single_ = real && tensor.dtype.size == 8;
    start_.assign(tensor.shape.size(), 0), whole_ = whole_shape(tensor.shape, shards);
    for (const Shard& s : shards) start_[s.axis] = s.offset;
    add_all(tensor);
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

  /// The event's `sketch`; the buckets are value `key`.
  std::string json(const std::string& key, const std::vector<std::int64_t>& shape) const {
    char hash[20];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(specials_));
    std::string text = "{\"version\":1,\"k\":\"" + key + "\",\"count\":" + std::to_string(count_) +
                       ",\"nan\":" + std::to_string(nan_) + ",\"inf\":" + std::to_string(infinite_) +
                       ",\"zero\":" + std::to_string(zero_) + ",\"sum\":" + number(sum_) +
                       ",\"sum_squares\":" + number(squares_) + ",\"min\":" + number(minimum_) +
                       ",\"max\":" + number(maximum_) + ",\"specials\":\"" + hash + "\",\"fits\":[" + fits() + "]";
    if (shape != whole_)
      text += ",\"part\":{\"start\":" + list_of(start_) +
              ",\"step\":" + list_of(std::vector<std::int64_t>(shape.size(), 1)) + ",\"size\":" + list_of(shape) + "}";
    return text + "}";
  }

 private:
  // splitmix64's output function (Steele, Lea, Flood 2014) of a counter.
  static std::uint64_t hash_of(std::uint64_t index) {
    std::uint64_t z = index * 0x9E3779B97F4A7C15 + 0x7061726974792D31;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  static std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", x);
    return std::isfinite(x) ? text : "null";
  }

  // Row by row: elements of the last axis lie together in the whole.
  void add_all(const Packed& t) {
    const std::size_t rank = t.shape.size();
    const std::int64_t row = rank == 0 ? 1 : t.shape[rank - 1];
    const std::size_t item = t.dtype.size, total = t.bytes.size() / item;
    std::vector<std::int64_t> at(rank, 0);
    for (std::size_t first = 0; first < total; first += static_cast<std::size_t>(row)) {
      std::int64_t place = 0;
      for (std::size_t a = 0; a < rank; ++a) place = place * whole_[a] + start_[a] + at[a];
      for (std::int64_t i = 0; i < row; ++i)
        for (int part = 0; part < parts_; ++part)
          add(value(t, first + static_cast<std::size_t>(i), part),
              hash_of(static_cast<std::uint64_t>((place + i) * parts_ + part)));
      for (std::size_t a = rank; a-- > 1 && ++at[a - 1] == t.shape[a - 1];) at[a - 1] = 0;
    }
  }

  double value(const Packed& t, std::size_t index, int part) const {
    if (parts_ == 1) return element(t, index);
    const char* at = t.bytes.data() + index * t.dtype.size + static_cast<std::size_t>(part) * t.dtype.size / 2;
    return t.dtype.size == 8 ? loaded<float>(at) : loaded<double>(at);
  }

  void add(double x, std::uint64_t hash) {
    ++count_;
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? nan_ : infinite_);
      specials_ += hash * (std::isnan(x) ? 1 : x > 0 ? 3 : 5);
      return;
    }
    zero_ += x == 0, sum_ += x, squares_ += x * x, minimum_ = std::min(minimum_, x), maximum_ = std::max(maximum_, x);
    buckets_[(hash >> 51) & (buckets_.size() - 1)] += (hash >> 63) != 0 ? -x : x;
    if (single_ || half_ || brain_) narrow(x);
  }

  // Can narrower floats hold it?
  void narrow(double x) {
    const auto single = static_cast<float>(x);
    std::uint32_t bits;
    std::memcpy(&bits, &single, sizeof bits);
    const bool exact = static_cast<double>(single) == x;
    single_ = single_ && exact;
    brain_ = brain_ && exact && (bits & 0xFFFF) == 0;
    const double size = std::abs(x);
    half_ = half_ && exact && size <= 65504 &&
            (size >= 0x1p-14 ? (bits & 0x1FFF) == 0 : std::nearbyint(size * 0x1p24) == size * 0x1p24);
  }

  std::string fits() const {
    std::string text;
    for (const auto& [holds, name] : {std::pair{single_, "float32"}, {half_, "float16"}, {brain_, "bfloat16"}})
      if (holds) text += (text.empty() ? "\"" : ",\"") + std::string(name) + "\"";
    return text;
  }

  std::vector<double> buckets_;
  int parts_;
  std::vector<std::int64_t> start_, whole_;
  std::int64_t count_ = 0, nan_ = 0, infinite_ = 0, zero_ = 0;
  double sum_ = 0, squares_ = 0, minimum_ = std::numeric_limits<double>::infinity(), maximum_ = -minimum_;
  std::uint64_t specials_ = 0;
  bool single_ = false, half_ = false, brain_ = false;  // does every number fit float32, float16, bfloat16?
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
