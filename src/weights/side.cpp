#include "weights/side.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

// Bytes read before a set is opened anew: pages of a mapped file count as this process's memory until it is unmapped.
constexpr int64_t kMostMapped = 512 << 20;
constexpr uintmax_t kMostHashed = 1'000'000'000;  // bytes

}  // namespace

int64_t Parameter::count() const {
  int64_t n = 1;
  for (const int64_t length : shape) n *= length;
  return n;
}

WeightSide::WeightSide(const std::filesystem::path& file) : file_(file) {
  if (TensorSet::fits(file)) {
    set_ = TensorSet::open(file);
    for (const std::string& name : set_->names())
      parameters_.push_back({name, set_->type(name).first, set_->type(name).second});
    notes_ = set_->notes();
  } else {
    dump_ = std::make_unique<Dump>(file);
    for (const std::string& name : dump_->weight_names()) {
      const at::Tensor tensor = dump_->weight(name);
      parameters_.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
    }
    if (!dump_->complete()) notes_.emplace_back("the recording was interrupted; only the weights it holds are audited");
  }
  if (parameters_.empty())
    throw Error(fmt::format("{}: holds no weights; record the model itself, or give its checkpoint", file.string()));
}

at::Tensor WeightSide::load(size_t parameter) const {
  const auto& [name, dtype, shape] = parameters_[parameter];
  const auto bytes = static_cast<int64_t>(at::elementSize(dtype)) * parameters_[parameter].count();
  if (set_ && (read_ += bytes) > kMostMapped) {
    set_ = TensorSet::open(file_);
    read_ = bytes;
  }
  at::Tensor tensor = (set_ ? set_->value(name) : dump_->weight(name)).detach();
  if (tensor.is_neg()) tensor = tensor.resolve_neg();
  return tensor.is_conj() ? tensor.resolve_conj() : tensor;
}

Side WeightSide::describe() const {
  Side side{file_.string(), "", "", "", nlohmann::json::object()};
  if (dump_) side = {file_.string(), "", dump_->model(), dump_->producer(), dump_->provenance()};
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file_, problem)) return side;
  if (std::filesystem::file_size(file_, problem) <= kMostHashed)
    side.sha256 = sha256_of_file(file_);
  else
    side.details["sha256"] = "not taken: the file is larger than 1 GB";
  return side;
}

}  // namespace parity
