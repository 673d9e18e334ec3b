// Layouts applied. What does not fit is an answer here, not an exception: it decides a verdict.
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "pair/name_map.hpp"

namespace parity {
namespace {

// Each step changes `t`, or says why it cannot.

std::string misfit(const std::string& step, const at::Tensor& t) {
  return fmt::format("{} does not fit a tensor of shape {}", step, fmt::join(t.sizes(), "x"));
}

std::string take_part(at::Tensor& t, int64_t axis, int64_t part, int64_t parts) {
  if (axis < -t.dim() || axis >= t.dim() || t.size(axis) % parts != 0)
    return misfit(fmt::format("split({},{},{})", axis, part, parts), t);
  t = t.narrow(axis, part * (t.size(axis) / parts), t.size(axis) / parts);
  return "";
}

std::string take_slice(at::Tensor& t, int64_t axis, int64_t begin, int64_t length) {
  if (axis < -t.dim() || axis >= t.dim() || begin > t.size(axis) || length > t.size(axis) - begin)
    return misfit(fmt::format("slice({},{},{})", axis, begin, length), t);
  t = t.narrow(axis, begin, length);
  return "";
}

std::string give_shape(at::Tensor& t, const std::vector<int64_t>& shape, const char* step) {
  int64_t known = 1;
  for (const int64_t n : shape) known *= n == -1 ? 1 : n;
  const bool open = std::find(shape.begin(), shape.end(), -1) != shape.end();
  if (open ? known == 0 || t.numel() % known != 0 : known != t.numel())
    return misfit(fmt::format("{}({})", step, fmt::join(shape, ",")), t);
  t = t.reshape(shape);
  return "";
}

std::string permute_axes(at::Tensor& t, const std::vector<int64_t>& order) {
  if (static_cast<int64_t>(order.size()) != t.dim()) return misfit(fmt::format("perm of {} axes", order.size()), t);
  t = t.permute(order);
  return "";
}

Fitted fitted(at::Tensor t, std::string problem) {
  return problem.empty() ? Fitted{std::move(t), ""} : Fitted{{}, std::move(problem)};
}

at::Tensor required(Fitted fit) {
  if (!fit.tensor.defined()) throw Error(fit.problem);
  return std::move(fit.tensor);
}

}  // namespace

Fitted Layout::fit_reference(const at::Tensor& candidate) const {
  at::Tensor t = candidate;
  std::string problem;
  if (split) problem = take_part(t, (*split)[0], (*split)[1], (*split)[2]);
  if (slice && problem.empty()) problem = take_slice(t, (*slice)[0], (*slice)[1], (*slice)[2]);
  if (!view.empty() && problem.empty()) problem = give_shape(t, view, "view");
  if (!permutation.empty() && problem.empty()) problem = permute_axes(t, permutation);
  if (!reshape.empty() && problem.empty()) problem = give_shape(t, reshape, "reshape");
  return fitted(std::move(t), std::move(problem));
}

Fitted Layout::fit_candidate(const at::Tensor& reference, at::IntArrayRef candidate_shape) const {
  if (split || slice)
    return {{}, "a rule with split(…) or slice(…) cannot hand a reference value back: map the fused tensor itself"};
  at::Tensor t = reference;
  std::string problem;
  if (!reshape.empty()) {  // what the shape was before: a stand-in without memory goes the way forward
    Layout before = *this;
    before.reshape.clear();
    Fitted shape = before.fit_reference(at::zeros({}).expand(candidate_shape));
    if (!shape.tensor.defined()) return shape;
    problem = give_shape(t, shape.tensor.sizes().vec(), "reshape");
  }
  if (!permutation.empty() && problem.empty()) {
    std::vector<int64_t> inverse(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
    problem = permute_axes(t, inverse);
  }
  if ((!view.empty() || !reshape.empty()) && problem.empty()) problem = give_shape(t, candidate_shape.vec(), "view");
  return fitted(std::move(t), std::move(problem));
}

std::optional<at::Tensor> Layout::as_shape(const at::Tensor& candidate, at::IntArrayRef shape) const {
  at::Tensor value = fit_reference(candidate).tensor;
  return value.defined() && value.sizes() == shape ? std::optional(std::move(value)) : std::nullopt;
}

at::Tensor Layout::to_reference(const at::Tensor& candidate) const { return required(fit_reference(candidate)); }

at::Tensor Layout::to_candidate(const at::Tensor& reference) const {
  if (!view.empty() || !reshape.empty())
    throw Error("a rule with view(…) or reshape(…) hands a value back only when the candidate's shape is known");
  return required(fit_candidate(reference, {}));
}

at::Tensor Layout::to_candidate(const at::Tensor& reference, at::IntArrayRef candidate_shape) const {
  return required(fit_candidate(reference, candidate_shape));
}

std::string Layout::text() const {
  std::vector<std::string> steps;
  if (split) steps.push_back(fmt::format("split({})", fmt::join(*split, ",")));
  if (slice) steps.push_back(fmt::format("slice({})", fmt::join(*slice, ",")));
  if (!view.empty()) steps.push_back(fmt::format("view({})", fmt::join(view, ",")));
  if (!permutation.empty()) steps.push_back(fmt::format("perm({})", fmt::join(permutation, ",")));
  if (!reshape.empty()) steps.push_back(fmt::format("reshape({})", fmt::join(reshape, ",")));
  return fmt::format("{}", fmt::join(steps, " "));
}

}  // namespace parity
