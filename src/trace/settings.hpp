// Process-wide switches of LibTorch that change which kernel runs, and so which bits come out.
#pragma once
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace parity {

/// The switches of CUDA's libraries and of attention: sets what the recording was made with (provenance: tf32, cudnn,
/// sdpa, reduced_precision_reduction) and restores it at the end. On the CPU they change no product.
class RecordedGpuSettings {
 public:
  explicit RecordedGpuSettings(const nlohmann::json& provenance);
  ~RecordedGpuSettings();
  RecordedGpuSettings(const RecordedGpuSettings&) = delete;
  RecordedGpuSettings& operator=(const RecordedGpuSettings&) = delete;

 private:
  std::vector<bool> before_;  // in the order of the table
};

/// What a GPU recorded with operands rounded to TF32, in words ("products and convolutions"); "" for none, and for a
/// CPU, which never does. `provenance`: a recording's (FORMAT.md).
std::string tf32_of(const nlohmann::json& provenance);

/// Sets what the recording was made with (provenance: matmul_precision, deterministic, mkldnn, and the GPU's) and
/// restores it at the end. The number of threads is the caller's business.
class RecordedSettings {
 public:
  explicit RecordedSettings(const nlohmann::json& provenance);
  ~RecordedSettings();
  RecordedSettings(const RecordedSettings&) = delete;
  RecordedSettings& operator=(const RecordedSettings&) = delete;

 private:
  std::string matmul_precision_;
  bool deterministic_, warn_only_, mkldnn_;
  RecordedGpuSettings gpu_;  // last: TF32 in products is a matmul precision to LibTorch
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
