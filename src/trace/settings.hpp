// Process-wide switches of LibTorch that change which kernel runs, and so which bits come out.
#pragma once
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace parity {

/// Sets what the recording was made with (provenance: matmul_precision, deterministic, mkldnn) and restores it at the
/// end. The number of threads is the caller's business.
class RecordedSettings {
 public:
  explicit RecordedSettings(const nlohmann::json& provenance);
  ~RecordedSettings();
  RecordedSettings(const RecordedSettings&) = delete;
  RecordedSettings& operator=(const RecordedSettings&) = delete;

 private:
  std::string matmul_precision_;
  bool deterministic_, warn_only_, mkldnn_;
};

/// Other kernels for a while; what it changed is restored at the end. nullopt leaves the threads alone.
class OtherKernels {
 public:
  OtherKernels(bool onednn, std::optional<int> threads = std::nullopt);
  ~OtherKernels();
  OtherKernels(const OtherKernels&) = delete;
  OtherKernels& operator=(const OtherKernels&) = delete;

 private:
  int threads_;
  bool onednn_;
};

/// Results of ops on integers take their dtype from LibTorch's default dtype, which the recording's process may have
/// changed.
class DefaultDtype {
 public:
  explicit DefaultDtype(std::optional<at::ScalarType> dtype);  // nullopt: leaves it alone
  ~DefaultDtype();
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  caffe2::TypeMeta before_;
};

}  // namespace parity
