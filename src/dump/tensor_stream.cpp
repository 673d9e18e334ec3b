#include "dump/tensor_stream.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/allocate.hpp"

namespace parity {
namespace {

constexpr char kStreamFormat[] = "parity-stream/1";
constexpr size_t kMostLine = 4 << 20;  // bytes; the first message holds the model's configuration
constexpr size_t kMostAxes = 32;

// Elements of `shape`; nullopt when an axis is no length, or their bytes are more than 63 bits can say.
std::optional<uint64_t> bytes_of(const std::vector<int64_t>& shape, uint64_t element) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  uint64_t bytes = element;
  for (const int64_t length : shape) {
    if (length < 0 || (length > 0 && bytes > kMost / static_cast<uint64_t>(length))) return std::nullopt;
    bytes *= static_cast<uint64_t>(length);
  }
  return bytes;
}

}  // namespace

TensorStream::TensorStream(Connection& connection, std::string where)
    : connection_(connection), where_(std::move(where)) {
  auto first = message();
  if (!first) return;
  if (first->value("e", "") != "hello" || first->value("format", nlohmann::json()) != kStreamFormat)
    fail(fmt::format("the first message is not that of a {} stream", kStreamFormat));
  head_ = std::move(*first);
}

void TensorStream::fail(const std::string& what) const {
  throw Error(fmt::format("{}: {}; send with parity_probe.Writer(\"parity://HOST:PORT\")", where_, what));
}

// An object with a kind, "e".
std::optional<nlohmann::json> TensorStream::message() {
  std::optional<std::string> line;
  try {
    line = connection_.line(kMostLine);
  } catch (const Error& error) {
    fail(error.what());
  }
  if (!line) {
    over_ = true;
    return std::nullopt;
  }
  auto message = nlohmann::json::parse(*line, nullptr, false);
  if (!message.is_object() || !message.contains("e") || !message["e"].is_string())
    fail("what was sent is no line of JSON with a kind");
  return message;
}

std::optional<StreamedTensor> TensorStream::next() {
  while (!over_) {
    const auto got = message();
    if (!got) break;
    try {
      const std::string kind = (*got)["e"];
      if (kind == "value") {
        over_ = !take_value(*got);
      } else if (kind == "point") {
        return point(*got);
      } else if (kind == "end") {
        complete_ = got->at("complete").get<bool>();
        over_ = true;
      } else if (kind != "note") {
        fail(fmt::format("kind '{}' is unknown", kind));
      }
    } catch (const nlohmann::json::exception& error) {
      fail(fmt::format("a message lacks something or has it in another type ({})", error.what()));
    }
  }
  return std::nullopt;
}

bool TensorStream::take_value(const nlohmann::json& message) {
  key_ = message.at("k").get<std::string>();
  const std::string what = fmt::format("value '{}'", key_);
  const at::ScalarType dtype = dtype_of(message, what);
  const auto shape = message.at("s").get<std::vector<int64_t>>();
  const auto bytes = shape.size() > kMostAxes ? std::nullopt : bytes_of(shape, at::elementSize(dtype));
  if (!bytes || message.at("n").get<uint64_t>() != *bytes)
    fail(fmt::format("{}: its bytes are not those of its dtype and shape", what));
  value_ = empty_for(shape, dtype, fmt::format("{}: {}", where_, what));
  if (!connection_.bytes(value_.data_ptr(), *bytes)) return false;
  if (dtype == at::kBool) value_ = value_.view(at::kByte).ne(0);  // any other byte is no bool to C++
  return true;
}

at::ScalarType TensorStream::dtype_of(const nlohmann::json& message, const std::string& what) const {
  try {
    return parse_dtype(message.at("d").get<std::string>());
  } catch (const Error& error) {
    fail(fmt::format("{}: {}", what, error.what()));
  }
}

StreamedTensor TensorStream::point(const nlohmann::json& message) {
  StreamedTensor tensor;
  tensor.path = message.at("path").get<std::string>();
  tensor.call = message.at("call").get<int>();
  tensor.role = message.at("role").get<std::string>();
  tensor.source = message.value("src", "");
  if (!value_.defined() || message.at("k").get<std::string>() != key_)
    fail(fmt::format("'{}' is not the value sent before it", tensor.path));
  tensor.value = std::exchange(value_, {});
  return tensor;
}

}  // namespace parity
