// Named tensors that a running program sends: parity_probe.Writer("parity://HOST:PORT"), whose messages
// probes/python/parity_probe/stream.py lists. What a message says about itself is checked before memory is taken for
// it.
#pragma once
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "dump/socket.hpp"

namespace parity {

struct StreamedTensor {
  std::string path;
  int call = 0;
  std::string role, source;  // "output", "input" or "weight"; the line of the port's code, "" if not sent
  at::Tensor value;          // row-major
};

class TensorStream {
 public:
  /// Reads the first message. `connection` must outlive this; `where` begins every error. Throws Error for anything but
  /// such a stream.
  TensorStream(Connection& connection, std::string where);

  /// The next tensor; nullopt when the stream is over. Throws Error, one line: foreign bytes, sizes that contradict
  /// each other, an unknown dtype, more than this machine's free memory.
  std::optional<StreamedTensor> next();

  /// What it began with: "producer", "model", "provenance"; null when the other side went before it.
  const nlohmann::json& head() const { return head_; }
  /// Did the other side say that everything was sent? Known at the end.
  bool complete() const { return complete_; }

 private:
  std::optional<nlohmann::json> message();
  bool take_value(const nlohmann::json& message);  // false: the other side went within it
  at::ScalarType dtype_of(const nlohmann::json& message, const std::string& what) const;
  StreamedTensor point(const nlohmann::json& message);
  [[noreturn]] void fail(const std::string& what) const;

  Connection& connection_;
  const std::string where_;
  nlohmann::json head_;
  at::Tensor value_;  // the last, until a point names it
  std::string key_;   // of it
  bool complete_ = false, over_ = false;
};

}  // namespace parity
