#include "dump/sketch.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/source_lines.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr int64_t kMostNumbers = int64_t{1} << 60;

[[noreturn]] void fail(const Dump& dump, size_t event, const std::string& what) {
  throw Error(fmt::format("{}: dataset '/trace/events', event {}: {}", dump.file().string(), event + 1, what));
}

std::string text_or_empty(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void check_sketch(const Dump& dump, size_t event, const json& sketch, const std::string& path) {
  if (!sketch.is_object() || text_or_empty(sketch, "k").empty())
    fail(dump, event, fmt::format("the sketch of '{}' is not an object with a key 'k'", path));
  if (!sketch.contains("version") || sketch["version"] != kVersion)
    fail(dump, event,
         fmt::format("the sketch of '{}' has version {}, this program knows {}", path,
                     sketch.value("version", json()).dump(), kVersion));
  if (sketch.contains("part"))
    fail(dump, event,
         fmt::format("the sketch of '{}' is of a part of that tensor: add up the recordings of all ranks first "
                     "(python -m parity_probe sketch RANK0 RANK1 … -o WHOLE)",
                     path));
}

SketchPoint point_of(const Dump& dump, size_t index) {
  const json& event = dump.events()[index];
  SketchPoint point;
  point.event = index;
  point.path = text_or_empty(event, "path");
  point.role = text_or_empty(event, "role");
  if (point.role.empty()) point.role = "output";
  point.kind = text_or_empty(event, "class");
  if (!event.contains("path") || !event.contains("call") || !event["call"].is_number_integer() ||
      !event.contains("d") || !event["d"].is_string() || !event.contains("s"))
    fail(dump, index, "a point has no path, call, dtype or shape");
  point.call = event["call"].get<int>();
  point.dtype = parse_dtype(event["d"].get<std::string>());
  int64_t numbers = 1;
  for (const json& size : event["s"]) {
    const int64_t n = size.is_number_integer() ? size.get<int64_t>() : -1;
    if (n < 0 || (n > 0 && numbers > kMostNumbers / n)) fail(dump, index, "a point has no valid shape");
    numbers *= std::max<int64_t>(n, 1);
    point.shape.push_back(n);
  }
  point.key = text_or_empty(event, "k");
  if (const auto sketch = event.find("sketch"); sketch != event.end()) {
    check_sketch(dump, index, *sketch, point.path);
    point.key = (*sketch)["k"].get<std::string>();
    point.sketched = true;
  }
  return point;
}

class SketchReader {
 public:
  SketchReader(const Dump& dump, const SketchPoint& point)
      : dump_(dump), point_(point), json_(dump.events()[point.event]["sketch"]) {}

  Sketch read() const {
    Sketch sketch;
    sketch.buckets = buckets();
    sketch.count = integer("count");
    sketch.nan = integer("nan");
    sketch.inf = integer("inf");
    sketch.zero = integer("zero");
    const int64_t expected = c10::multiply_integers(point_.shape) * (at::isComplexType(point_.dtype) ? 2 : 1);
    if (sketch.count != expected) damaged(fmt::format("it is of {} numbers, the shape has {}", sketch.count, expected));
    if (sketch.nan + sketch.inf + sketch.zero > sketch.count) damaged("its counts add up to more than its numbers");
    sketch.sum = number("sum", NAN);
    sketch.sum_squares = number("sum_squares", INFINITY);
    sketch.min = number("min", INFINITY);
    sketch.max = number("max", -INFINITY);
    if (sketch.sum_squares < 0) damaged("its sum of squares is negative");
    sketch.specials = hexadecimal();
    if (const auto fits = json_.find("fits"); fits != json_.end() && fits->is_array())
      for (const json& name : *fits)
        if (name.is_string()) sketch.fits.push_back(parse_dtype(name.get<std::string>()));
    return sketch;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    fail(dump_, point_.event, fmt::format("the sketch of '{}' is damaged: {}; record it again", point_.path, what));
  }

  std::vector<double> buckets() const {
    if (!dump_.has_value(point_.key)) damaged(fmt::format("value '{}' is not stored", point_.key));
    const auto [dtype, shape] = dump_.value_type(point_.key);
    if (dtype != at::kDouble || shape.size() != 1 || shape[0] < 1 || shape[0] > Sketch::kMostBuckets ||
        !std::has_single_bit(static_cast<uint64_t>(shape[0])))
      damaged(fmt::format("value '{}' is not one row of fp64 buckets, a power of two up to {}", point_.key,
                          Sketch::kMostBuckets));
    const at::Tensor stored = dump_.value(point_.key).contiguous();
    const double* first = stored.const_data_ptr<double>();
    std::vector<double> out(first, first + stored.numel());
    for (const double bucket : out)
      if (!std::isfinite(bucket)) damaged("a bucket is NaN or infinite");
    return out;
  }

  int64_t integer(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_number_integer() || found->get<int64_t>() < 0 ||
        found->get<int64_t>() > 2 * kMostNumbers)
      damaged(fmt::format("'{}' is not a count", name));
    return found->get<int64_t>();
  }

  double number(const char* name, double missing) const {
    const auto found = json_.find(name);
    if (found == json_.end() || !(found->is_number() || found->is_null()))
      damaged(fmt::format("'{}' is not a number", name));
    return found->is_null() ? missing : found->get<double>();
  }

  uint64_t hexadecimal() const {
    const std::string text = text_or_empty(json_, "specials");
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size()) damaged("'specials' is not a hexadecimal number");
    return value;
  }

  const Dump& dump_;
  const SketchPoint& point_;
  const json& json_;
};

}  // namespace

std::vector<SketchPoint> sketch_points(const Dump& dump) {
  std::vector<SketchPoint> points;
  SourceLines lines(dump);
  for (size_t i = 0; i < dump.events().size(); ++i)
    if (dump.events()[i]["e"] == "point") {
      points.push_back(point_of(dump, i));
      if (const int line = lines.find(i, "src"); line >= 0) points.back().source = lines.texts()[line];
    }
  return points;
}

Sketch read_sketch(const Dump& dump, const SketchPoint& point) { return SketchReader(dump, point).read(); }

}  // namespace parity
