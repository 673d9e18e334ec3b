// Recording what LibTorch computes in this process: below the composite ops, as parity_probe.torch records it with a
// TorchDispatchMode.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

namespace parity {

/// One op that ran.
struct CapturedOp {
  nlohmann::json event;               // FORMAT.md, "op", without "in"
  std::vector<int64_t> reads, makes;  // value ids
  bool dynamic = false;               // the size of its results depends on values: they are to be stored
};

/// While it lives, `during` records every op that the thread runs. One at a time.
class Capture {
 public:
  /// `op` is told of each op after it ran.
  explicit Capture(std::function<void(CapturedOp)> op);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Runs `work` recorded.
  void during(const std::function<void()>& work);

  /// A tensor's id: that of the op that made it, or a new one, once a tensor. It stays alive until it is forgotten.
  int64_t id_of(const at::Tensor& tensor);
  bool knows(const at::Tensor& tensor) const;
  const at::Tensor& tensor(int64_t id) const;
  void forget(int64_t id);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `work`, which the capture around it does not see: reading a tensor's numbers, making a constant.
void unseen(const std::function<void()>& work);

}  // namespace parity
