// The probes of the main job: record a free run, hand the reference back op by op, and the same with a small
// perturbation.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/probe.hpp"

namespace parity {

/// A point of the candidate: path and how often it was seen before.
using PointKey = std::pair<std::string, int>;

/// Counts calls of each path and leaves what to do to a function.
class CallbackProbe final : public Probe {
 public:
  /// `on_point` gets the point and the candidate's value, and returns what the model goes on with.
  using OnPoint = std::function<at::Tensor(const PointKey&, const at::Tensor&)>;
  explicit CallbackProbe(OnPoint on_point) : Probe(true), on_point_(std::move(on_point)) {}

 private:
  at::Tensor seen(const std::string& path, at::Tensor value) override {
    return on_point_({path, calls_[path]++}, value);
  }

  OnPoint on_point_;
  std::map<std::string, int> calls_;
};

/// Keeps a copy of every point, in order: a recording of the candidate in memory.
struct RecordedPoints {
  std::vector<PointKey> order;
  std::map<PointKey, at::Tensor> values;
};
CallbackProbe recording_probe(RecordedPoints& into);

}  // namespace parity
