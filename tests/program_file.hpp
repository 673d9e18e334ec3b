// Builds a recorded program op by op, each result computed by whoever writes the test.
#pragma once
#include "core/result.hpp"
#include "recording_file.hpp"
#include "trace/replay.hpp"

namespace parity::testing {

using nlohmann::json;

inline json ref(int64_t id) { return {{"v", id}}; }

class ProgramFile {
 public:
  explicit ProgramFile(const std::string& name) : file_(name), recording_(file_.path()) {}

  /// A stored tensor that no op made, with its names ("weights/gate"); its id.
  int64_t leaf(const at::Tensor& tensor, const json& names = json::array());
  /// An op event; results are stored unless `extra` says {"view": true} or {"store": false}. The id of the first result
  /// (each result gets the next id; {"ids": […]} in `extra` names them instead, for in-place ops).
  int64_t op(const std::string& name, json args, const std::vector<at::Tensor>& results, json kwargs = json::object(),
             json extra = json::object());
  void event(const json& event) { recording_.event(event); }
  RecordingFile& recording() { return recording_; }

  /// Closes the file and opens it for reading.
  Dump dump();

 private:
  TemporaryFile file_;
  RecordingFile recording_;
  int64_t next_ = 0;
  int versions_ = 0;
};

/// Values of all boundaries by path, first calls only.
std::map<std::string, at::Tensor> replayed(const Dump& dump, Precision precision = Precision::recorded,
                                           ReplayReport* report = nullptr);

/// The recording judged with `value` in place of the candidate's last tensor (undefined: with its own); only the paths
/// in `recorded` are given (empty: all). Closes the file.
Report judged_with(ProgramFile& file, const at::Tensor& value, const std::vector<std::string>& recorded = {});

/// The verdict on a program's result (its last tensor of that shape) when a port has `value` there. Closes the file.
OpResult judged_result(ProgramFile& file, const at::Tensor& value);
std::string diagnosis_of(ProgramFile& file, const at::Tensor& value);

}  // namespace parity::testing
