#include "dump/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>

#include "core/error.hpp"

namespace parity {
namespace {

struct DescrRow {
  std::string_view descr;  // without the byte order
  at::ScalarType dtype;
};

constexpr std::array kDescrs{
    DescrRow{"f8", at::kDouble},   DescrRow{"f4", at::kFloat},        DescrRow{"f2", at::kHalf},
    DescrRow{"V2", at::kBFloat16}, DescrRow{"b1", at::kBool},         DescrRow{"i1", at::kChar},
    DescrRow{"i2", at::kShort},    DescrRow{"i4", at::kInt},          DescrRow{"i8", at::kLong},
    DescrRow{"u1", at::kByte},     DescrRow{"u2", at::kUInt16},       DescrRow{"u4", at::kUInt32},
    DescrRow{"u8", at::kUInt64},   DescrRow{"c8", at::kComplexFloat}, DescrRow{"c16", at::kComplexDouble},
};

// The header is a Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. A value is kept as
// its text; strings without quotes, a list as far as its bracket.
class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  std::map<std::string, std::string> dict() {
    std::map<std::string, std::string> found;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      found[key] = value();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) fail();
    return found;
  }

 private:
  [[noreturn]] void fail() const { throw Error(where_ + ": the NumPy header cannot be understood"); }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool take(char wanted) {
    skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail();
  }

  std::string until(char end) {
    const size_t stop = text_.find(end, at_);
    if (stop == std::string_view::npos) fail();
    std::string found(text_.substr(at_, stop - at_));
    at_ = stop + 1;
    return found;
  }

  std::string quoted() {
    if (take('\'')) return until('\'');
    expect('"');
    return until('"');
  }

  std::string value() {
    skip();
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (first == '\'' || first == '"') return quoted();
    if (take('(')) return until(')');
    if (first == '[') throw Error(where_ + ": is an array of records; save its fields as arrays of their own");
    const size_t begin = at_;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

std::vector<int64_t> parse_shape(const std::string& text, const std::string& where) {
  std::vector<int64_t> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    while (at < end && *at == ' ') ++at;
    if (at == end) return shape;
    int64_t size = -1;
    const auto [next, problem] = std::from_chars(at, end, size);
    if (problem != std::errc() || size < 0) break;
    shape.push_back(size);
    at = next < end && *next == 'L' ? next + 1 : next;  // Python 2
    while (at < end && *at == ' ') ++at;
    if (at < end && *at++ != ',') break;
  }
  throw Error(fmt::format("{}: '({})' is not a shape", where, text));
}

at::ScalarType parse_descr(const std::string& descr, const std::string& where) {
  const std::string_view plain = std::string_view(descr).substr(descr.empty() ? 0 : 1);
  if (plain.starts_with("O"))
    throw Error(where + ": holds Python objects, which are never loaded; save it with an explicit numeric dtype");
  for (const DescrRow& row : kDescrs) {
    if (row.descr != plain) continue;
    if (descr[0] == '>' && at::elementSize(row.dtype) > 1)
      throw Error(fmt::format("{}: is big-endian ('{}'); save it as array.astype(array.dtype.newbyteorder('='))", where,
                              descr));
    if (std::string_view("<|=>").find(descr[0]) != std::string_view::npos) return row.dtype;
  }
  if (plain == "V1" || plain == "f1")
    throw Error(where +
                ": holds 1-byte floats: numpy does not say which of ml_dtypes' 8-bit types they were; save it as "
                ".safetensors, or record it with parity_probe.Writer");
  throw Error(fmt::format("{}: elements of NumPy type '{}' cannot be read", where, descr));
}

uint64_t bytes_of(const NpyHeader& header, const std::string& where) {
  uint64_t count = 1, bytes = 0;
  bool fits = true;
  for (const int64_t size : header.shape)  // a zero does not excuse the other sizes
    fits = fits && !__builtin_mul_overflow(count, std::max<uint64_t>(static_cast<uint64_t>(size), 1), &count);
  fits = fits && !__builtin_mul_overflow(count, at::elementSize(header.dtype), &bytes) && bytes <= INT64_MAX;
  if (!fits || header.shape.size() > 64)
    throw Error(fmt::format("{}: declares an impossible shape [{}]", where, fmt::join(header.shape, ", ")));
  return std::find(header.shape.begin(), header.shape.end(), 0) == header.shape.end() ? bytes : 0;
}

}  // namespace

NpyHeader parse_npy(std::string_view begin, const std::string& where) {
  if (!begin.starts_with("\x93NUMPY") || begin.size() < 12)
    throw Error(where + ": is not a NumPy array file, or a truncated one");
  const auto version = static_cast<unsigned char>(begin[6]);
  if (version < 1 || version > 3) throw Error(fmt::format("{}: NumPy format version {} is not known", where, version));
  const size_t width = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, begin.data() + 8, width);
  NpyHeader header;
  header.data_begin = 8 + width + length;
  if (length > 65536)
    throw Error(fmt::format("{}: a header of {} bytes is not what an array of numbers needs", where, length));
  if (header.data_begin > begin.size()) throw Error(where + ": is truncated within its header");
  const auto said = Literal(begin.substr(8 + width, length), where).dict();
  for (const char* key : {"descr", "fortran_order", "shape"})
    if (!said.contains(key)) throw Error(fmt::format("{}: the NumPy header lacks '{}'", where, key));
  const std::string& order = said.at("fortran_order");
  if (order != "True" && order != "False") throw Error(fmt::format("{}: fortran_order is '{}'", where, order));
  header.fortran_order = order == "True";
  header.dtype = parse_descr(said.at("descr"), where);
  header.void2 = header.dtype == at::kBFloat16;
  header.shape = parse_shape(said.at("shape"), where);
  header.data_bytes = bytes_of(header, where);
  return header;
}

at::Tensor NpyHeader::lay_out(const at::Tensor& bytes) const {
  const at::Tensor flat = bytes.numel() == 0 ? at::empty({0}, dtype) : bytes.view(dtype);
  if (!fortran_order) return flat.view(shape);
  const std::vector<int64_t> reversed(shape.rbegin(), shape.rend());
  std::vector<int64_t> axes(shape.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = static_cast<int64_t>(axes.size() - 1 - axis);
  return flat.view(reversed).permute(axes);
}

}  // namespace parity
