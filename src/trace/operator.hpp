// ATen's operators by their recorded names.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>

namespace parity {

/// The operator of a recorded name ("aten::add.Tensor"; without overload: "aten::mm"); nullopt when this LibTorch has
/// none.
std::optional<c10::OperatorHandle> find_operator(const std::string& name);

/// "aten::add.Tensor" -> "add".
std::string operator_kind(std::string_view name);

/// Does it only allocate, so that its result holds whatever the memory held?
bool is_uninitialised(std::string_view kind);

/// Does it number elements, as tokens or samples, beginning anew at each call?
bool is_range(std::string_view kind);

/// Does it select or order elements by their values, so that what follows has its rows by them (experts their tokens)?
bool is_selection(std::string_view kind);

/// Is each element of its result one of its arguments', as it is, or a constant? Rounding before it and behind it are
/// the same.
bool only_moves(std::string_view kind);

/// Is that result a mean, a standard deviation or a logarithm of sums, which the kernel leaves for its derivative?
/// Their number, shape and dtype are the backend's own: of a layer norm in bf16 they are bf16 on a CPU and fp32 on a
/// GPU.
bool is_for_derivative(std::string_view kind, size_t output);

}  // namespace parity
