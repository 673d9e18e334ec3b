#include "trace/arguments.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "trace/device.hpp"

namespace parity {
namespace {

using c10::TypeKind;
using nlohmann::json;

bool is_integer_kind(TypeKind kind) { return kind == TypeKind::IntType || kind == TypeKind::SymIntType; }

class ArgumentDecoder {
 public:
  ArgumentDecoder(Precision precision, const ValueLookup& lookup) : precision_(precision), lookup_(lookup) {}

  c10::IValue decode(const json& given, const c10::Argument& argument) const {
    try {
      return decode(given, *argument.real_type(), argument.N());
    } catch (const Error& error) {
      throw Error(fmt::format("argument '{}': {}", argument.name(), error.what()));
    }
  }

 private:
  [[noreturn]] static void mismatch(const json& given, const c10::Type& type) {
    throw Error(fmt::format("{} does not fit type {}", given.dump().substr(0, 80), type.str()));
  }

  c10::IValue decode(const json& given, const c10::Type& type, std::optional<int32_t> n) const {
    if (type.kind() == TypeKind::OptionalType)
      return given.is_null() ? c10::IValue() : decode(given, *type.castRaw<c10::OptionalType>()->getElementType(), n);
    if (type.kind() == TypeKind::ListType) return list(given, type, n);
    if (type.kind() == TypeKind::TensorType) return tensor(given, type);
    if (type.kind() == TypeKind::GeneratorType) return {};  // recorded random ops are opaque: nothing draws from it
    if (type.kind() == TypeKind::DeviceObjType) return replay_device();
    if (given.is_object()) return encoded(given, type);
    return plain(given, type);
  }

  at::Tensor tensor(const json& given, const c10::Type& type) const {
    if (given.is_null()) return {};
    if (given.is_object() && given.contains("v") && given["v"].is_number_integer())
      return lookup_(given["v"].get<int64_t>());
    if (!given.is_number() && !given.is_boolean() && !given.is_object()) mismatch(given, type);
    at::Tensor number = at::scalar_to_tensor(scalar(given, type));
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }

  // {"float": "inf"} and {"complex": [re, im]} are numbers; the rest are ATen's enumerations.
  at::Scalar scalar(const json& given, const c10::Type& type) const {
    if (given.is_boolean()) return {given.get<bool>()};
    if (given.is_number_integer()) return {given.get<int64_t>()};
    if (given.is_number()) return {given.get<double>()};
    if (given.is_object() && given.contains("float")) return {special_float(given, type)};
    if (given.is_object() && given.contains("complex")) {
      const json& parts = given["complex"];
      if (!parts.is_array() || parts.size() != 2) mismatch(given, type);
      const at::Scalar real = scalar(parts[0], type), imaginary = scalar(parts[1], type);
      return {c10::complex<double>(real.toDouble(), imaginary.toDouble())};
    }
    mismatch(given, type);
  }

  static double special_float(const json& given, const c10::Type& type) {
    const json& name = given["float"];
    if (name == "inf") return std::numeric_limits<double>::infinity();
    if (name == "-inf") return -std::numeric_limits<double>::infinity();
    if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
    mismatch(given, type);
  }

  c10::IValue encoded(const json& given, const c10::Type& type) const {
    const TypeKind kind = type.kind();
    const auto name = [&](const char* key) {
      return given.contains(key) && given[key].is_string() ? given[key].get<std::string>() : std::string();
    };
    if (kind == TypeKind::ScalarTypeType && given.contains("dtype"))
      return static_cast<int64_t>(redirect(parse_dtype(name("dtype")), precision_));
    if (kind == TypeKind::LayoutType && name("layout") == "strided") return static_cast<int64_t>(at::kStrided);
    if (kind == TypeKind::MemoryFormatType) return static_cast<int64_t>(memory_format(name("memory_format")));
    if (kind == TypeKind::NumberType) return scalar(given, type);
    if (kind == TypeKind::FloatType && given.contains("float")) return special_float(given, type);
    if (kind == TypeKind::ComplexType) return scalar(given, type).toComplexDouble();
    mismatch(given, type);
  }

  static at::MemoryFormat memory_format(const std::string& name) {
    if (name == "contiguous_format") return at::MemoryFormat::Contiguous;
    if (name == "preserve_format") return at::MemoryFormat::Preserve;
    if (name == "channels_last") return at::MemoryFormat::ChannelsLast;
    if (name == "channels_last_3d") return at::MemoryFormat::ChannelsLast3d;
    throw Error(fmt::format("memory format '{}' is unknown", name));
  }

  c10::IValue plain(const json& given, const c10::Type& type) const {
    const TypeKind kind = type.kind();
    if (is_integer_kind(kind) && given.is_number_integer()) return given.get<int64_t>();
    if (is_integer_kind(kind) && given.is_boolean()) return static_cast<int64_t>(given.get<bool>());
    if (kind == TypeKind::FloatType && given.is_number()) return given.get<double>();
    if (kind == TypeKind::FloatType && given.is_boolean()) return given.get<bool>() ? 1.0 : 0.0;
    if (kind == TypeKind::BoolType && given.is_boolean()) return given.get<bool>();
    if (kind == TypeKind::BoolType && given.is_number_integer()) return given.get<int64_t>() != 0;
    if (kind == TypeKind::NumberType) return scalar(given, type);
    if (kind == TypeKind::StringType && given.is_string()) return given.get<std::string>();
    mismatch(given, type);
  }

  // A single number stands for a list of fixed length (`int[2] stride=1`).
  c10::IValue list(const json& given, const c10::Type& type, std::optional<int32_t> n) const {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    std::vector<c10::IValue> values;
    if (given.is_array())
      for (const json& item : given) values.push_back(decode(item, *element, std::nullopt));
    else if (n && given.is_primitive() && !given.is_null())
      values.assign(*n, decode(given, *element, std::nullopt));
    else
      mismatch(given, type);
    return typed_list(values, element);
  }

  static c10::IValue typed_list(const std::vector<c10::IValue>& values, const c10::TypePtr& element) {
    const auto fill = [&](auto list, auto convert) {
      list.reserve(values.size());
      for (const c10::IValue& value : values) list.push_back(convert(value));
      return c10::IValue(std::move(list));
    };
    switch (element->kind()) {
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        return fill(c10::List<int64_t>(), [](const auto& v) { return v.toInt(); });
      case TypeKind::FloatType:
        return fill(c10::List<double>(), [](const auto& v) { return v.toDouble(); });
      case TypeKind::BoolType:
        return fill(c10::List<bool>(), [](const auto& v) { return v.toBool(); });
      case TypeKind::TensorType:
        return fill(c10::List<at::Tensor>(), [](const auto& v) { return v.toTensor(); });
      case TypeKind::OptionalType:
        if (element->castRaw<c10::OptionalType>()->getElementType()->kind() == TypeKind::TensorType)
          return fill(c10::List<std::optional<at::Tensor>>(),
                      [](const auto& v) { return v.isNone() ? std::nullopt : std::optional(v.toTensor()); });
        [[fallthrough]];
      default:
        return fill(c10::impl::GenericList(element), [](const auto& v) { return v; });
    }
  }

  Precision precision_;
  const ValueLookup& lookup_;
};

// A factory that was given no device took its process's default.
void place_factory(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
  const auto device = argument_index(schema, "device");
  if (!device || !stack[*device].isNone()) return;
  const bool reads = std::any_of(stack.begin(), stack.end(),
                                 [](const c10::IValue& value) { return value.isTensor() || value.isTensorList(); });
  if (!reads) stack[*device] = replay_device();
}

}  // namespace

std::optional<size_t> argument_index(const c10::FunctionSchema& schema, std::string_view name) {
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == name) return i;
  return std::nullopt;
}

torch::jit::Stack read_arguments(const Op& op, const c10::FunctionSchema& schema, Precision precision,
                                 const ValueLookup& lookup) {
  const auto& arguments = schema.arguments();
  const ArgumentDecoder decoder(precision, lookup);
  if (op.args.size() > arguments.size())
    throw Error(fmt::format("{} arguments are given, the operator takes {}", op.args.size(), arguments.size()));
  for (const auto& [name, given] : op.kwargs.items())
    if (!argument_index(schema, name)) throw Error(fmt::format("the operator has no argument '{}'", name));
  torch::jit::Stack stack;
  stack.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    const auto named = op.kwargs.find(argument.name());
    if (argument.name() == "pin_memory")
      stack.emplace_back();  // only for transfers to other devices
    else if (i < op.args.size())
      stack.push_back(decoder.decode(op.args[i], argument));
    else if (named != op.kwargs.end())
      stack.push_back(decoder.decode(*named, argument));
    else if (argument.default_value())
      stack.push_back(*argument.default_value());
    else
      throw Error(fmt::format("argument '{}' is missing", argument.name()));
  }
  place_factory(schema, stack);
  return stack;
}

std::vector<std::optional<at::Tensor>> flatten_results(const torch::jit::Stack& results) {
  std::vector<std::optional<at::Tensor>> flat;
  const std::function<void(const c10::IValue&)> add = [&](const c10::IValue& value) {
    if (value.isTensor())
      flat.push_back(value.toTensor().defined() ? std::optional(value.toTensor()) : std::nullopt);
    else if (value.isList())
      for (const c10::IValue& element : value.toListRef()) add(element);
    else if (value.isTensorList())
      for (const at::Tensor& element : value.toTensorVector()) add(element);
    else
      flat.emplace_back();
  };
  for (const c10::IValue& value : results) add(value);
  return flat;
}

}  // namespace parity
