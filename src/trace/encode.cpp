#include "trace/encode.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"
#include "core/precision.hpp"

namespace parity {
namespace {

using c10::TypeKind;
using nlohmann::json;

json encode_scalar(const at::Scalar& number) {
  if (number.isBoolean()) return number.toBool();
  if (number.isIntegral(/*includeBool=*/false)) return number.toLong();
  if (!number.isComplex()) return encode_number(number.toDouble());
  const auto value = number.toComplexDouble();
  return {{"complex", {encode_number(value.real()), encode_number(value.imag())}}};
}

const char* format_name(at::MemoryFormat format) {
  if (format == at::MemoryFormat::Contiguous) return "contiguous_format";
  if (format == at::MemoryFormat::ChannelsLast) return "channels_last";
  if (format == at::MemoryFormat::ChannelsLast3d) return "channels_last_3d";
  return "preserve_format";
}

class Encoder {
 public:
  explicit Encoder(const std::function<int64_t(const at::Tensor&)>& id_of) : id_of_(id_of) {}

  // `type`: as the schema declares it. ATen's enumerations arrive as integers and are told by it.
  json encode(const c10::IValue& value, const c10::Type& type) const {
    if (value.isNone()) return nullptr;
    if (type.kind() == TypeKind::OptionalType)
      return encode(value, *type.castRaw<c10::OptionalType>()->getElementType());
    if (value.isTensor()) return tensor(value.toTensor());
    if (type.kind() == TypeKind::ScalarTypeType)
      return {{"dtype", dtype_name(static_cast<at::ScalarType>(value.toInt()))}};
    if (type.kind() == TypeKind::LayoutType) return {{"layout", "strided"}};
    if (type.kind() == TypeKind::MemoryFormatType)
      return {{"memory_format", format_name(static_cast<at::MemoryFormat>(value.toInt()))}};
    if (value.isDevice()) return {{"device", "cpu"}};
    if (value.isString()) return value.toStringRef();
    if (value.isScalar()) return encode_scalar(value.toScalar());
    if (value.isList()) return list(value, *type.castRaw<c10::ListType>()->getElementType());
    throw Error(fmt::format("an argument of type {} cannot be recorded", type.str()));
  }

 private:
  json tensor(const at::Tensor& tensor) const {
    if (!tensor.defined()) return nullptr;
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return encode_scalar(tensor.item());
    return {{"v", id_of_(tensor)}};
  }

  json list(const c10::IValue& value, const c10::Type& element) const {
    json items = json::array();
    for (const c10::IValue& item : value.toList().vec()) items.push_back(encode(item, element));
    return items;
  }

  const std::function<int64_t(const at::Tensor&)>& id_of_;
};

bool is_default(const c10::Argument& argument, const c10::IValue& value) {
  if (!argument.default_value()) return false;
  const c10::IValue& usual = *argument.default_value();
  if (usual.isNone() || value.isNone()) return usual.isNone() && value.isNone();
  return (usual.isScalar() || usual.isString()) && usual.tagKind() == value.tagKind() && usual == value;
}

}  // namespace

json encode_value(int64_t id, const at::Tensor& tensor) {
  return {{"v", id}, {"d", dtype_name(tensor.scalar_type())}, {"s", tensor.sizes().vec()}};
}

json encode_number(double number) {
  if (std::isfinite(number)) return number;
  return {{"float", std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
}

EncodedArguments encode_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments,
                                  const std::function<int64_t(const at::Tensor&)>& id_of) {
  const Encoder encoder(id_of);
  const auto& declared = schema.arguments();
  EncodedArguments encoded;
  size_t given = 0;  // positional ones up to the last that is not the default
  for (size_t i = 0; i < declared.size(); ++i)
    if (!declared[i].kwarg_only() && !is_default(declared[i], arguments[i])) given = i + 1;
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].kwarg_only() ? is_default(declared[i], arguments[i]) : i >= given) continue;
    json value = encoder.encode(arguments[i], *declared[i].real_type());
    if (declared[i].kwarg_only())
      encoded.kwargs[declared[i].name()] = std::move(value);
    else
      encoded.args.push_back(std::move(value));
  }
  return encoded;
}

}  // namespace parity
