// Tensors of ONNX files. Private to src/onnx.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>

#include "onnx/proto.hpp"

namespace parity::onnx {

class TensorReader {
 public:
  /// `owner` keeps the message alive, in whose memory the tensors lie where they can.
  TensorReader(std::filesystem::path file, std::shared_ptr<const ::onnx::ModelProto> owner)
      : file_(std::move(file)), owner_(std::move(owner)) {}

  /// Throws Error, one line that names the file and the tensor.
  at::Tensor read(const ::onnx::TensorProto& tensor) const;

 private:
  at::Tensor external(const ::onnx::TensorProto& tensor, at::ScalarType dtype, uint64_t bytes,
                      const std::string& where) const;

  std::filesystem::path file_;
  std::shared_ptr<const ::onnx::ModelProto> owner_;
};

}  // namespace parity::onnx
