#include "trace/settings.hpp"

#include <ATen/Parallel.h>

namespace parity {
namespace {

std::string matmul_precision_name(at::Float32MatmulPrecision precision) {
  switch (precision) {
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    default:
      return "highest";
  }
}

// LibTorch warns about its older interface each time: call it only for a change.
void set_matmul_precision(const std::string& precision) {
  if (matmul_precision_name(at::globalContext().float32MatmulPrecision()) != precision)
    at::globalContext().setFloat32MatmulPrecision(precision);
}

}  // namespace

RecordedSettings::RecordedSettings(const nlohmann::json& provenance)
    : matmul_precision_(matmul_precision_name(at::globalContext().float32MatmulPrecision())),
      deterministic_(at::globalContext().deterministicAlgorithms()),
      warn_only_(at::globalContext().deterministicAlgorithmsWarnOnly()),
      mkldnn_(at::globalContext().userEnabledMkldnn()),
      gpu_(provenance) {
  at::Context& context = at::globalContext();
  const auto flag = [&](const char* name, bool otherwise) {
    const auto found = provenance.find(name);
    return found != provenance.end() && found->is_boolean() ? found->get<bool>() : otherwise;
  };
  const auto precision = provenance.find("matmul_precision");
  if (precision != provenance.end() && (*precision == "highest" || *precision == "high" || *precision == "medium"))
    set_matmul_precision(precision->get<std::string>());
  context.setDeterministicAlgorithms(flag("deterministic", deterministic_), warn_only_);
  context.setUserEnabledMkldnn(flag("mkldnn", mkldnn_));
}

RecordedSettings::~RecordedSettings() {
  at::Context& context = at::globalContext();
  set_matmul_precision(matmul_precision_);
  context.setDeterministicAlgorithms(deterministic_, warn_only_);
  context.setUserEnabledMkldnn(mkldnn_);
}

OtherKernels::OtherKernels(bool onednn, std::optional<int> threads)
    : threads_(at::get_num_threads()), onednn_(at::globalContext().userEnabledMkldnn()) {
  if (threads) at::set_num_threads(*threads);
  at::globalContext().setUserEnabledMkldnn(onednn);
}

OtherKernels::~OtherKernels() {
  if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
  at::globalContext().setUserEnabledMkldnn(onednn_);
}

DefaultDtype::DefaultDtype(std::optional<at::ScalarType> dtype) : before_(c10::get_default_dtype()) {
  if (dtype) c10::set_default_dtype(c10::scalarTypeToTypeMeta(*dtype));
}

DefaultDtype::~DefaultDtype() {
  if (c10::get_default_dtype() != before_) c10::set_default_dtype(before_);
}

}  // namespace parity
