#include "dump/safetensors.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

class SafetensorsSet final : public TensorSet {
 public:
  explicit SafetensorsSet(const std::filesystem::path& file) : TensorSet(file), tensors_(file) {
    for (const std::string& name : tensors_.names()) add(name, tensors_.dtype(name), tensors_.shape(name));
  }

 private:
  at::Tensor read(size_t index) const override { return tensors_.tensor(names()[index]); }

  Safetensors tensors_;
};

}  // namespace

std::unique_ptr<TensorSet> open_safetensors_set(const std::filesystem::path& file) {
  return std::make_unique<SafetensorsSet>(file);
}

}  // namespace parity
