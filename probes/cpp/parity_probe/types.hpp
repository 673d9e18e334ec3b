// Element types, shapes, roles: what a caller of parity_probe.hpp names.
#pragma once
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace parity::probe {

/// The file cannot be made or written, or nothing listens at an address: what, where.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// `parity-check watch --stop` found the first divergence: at `path`, for the reason `diagnosis`.
struct Stopped : Error {
  Stopped(const std::string& address, const std::string& at, const std::string& why)
      : Error(address + ": stopped by parity-check watch: first divergence at " + (at.empty() ? "(result)" : at) +
              ": " + why),
        path(at),
        diagnosis(why) {}
  std::string path, diagnosis;
};

enum class Kind : std::uint8_t { real, bfloat, integer, unsigned_integer, boolean, complex, float8 };

/// An element type by torch's name; the bits are recorded as they are.
struct Dtype {
  const char* name;
  std::size_t size;  // bytes
  Kind kind;
};

inline constexpr Dtype f64{"float64", 8, Kind::real}, f32{"float32", 4, Kind::real}, f16{"float16", 2, Kind::real};
inline constexpr Dtype bf16{"bfloat16", 2, Kind::bfloat};
inline constexpr Dtype f8_e4m3{"float8_e4m3fn", 1, Kind::float8}, f8_e5m2{"float8_e5m2", 1, Kind::float8};
inline constexpr Dtype i64{"int64", 8, Kind::integer}, i32{"int32", 4, Kind::integer}, i16{"int16", 2, Kind::integer},
    i8{"int8", 1, Kind::integer};
inline constexpr Dtype u64{"uint64", 8, Kind::unsigned_integer}, u32{"uint32", 4, Kind::unsigned_integer},
    u16{"uint16", 2, Kind::unsigned_integer}, u8{"uint8", 1, Kind::unsigned_integer};
inline constexpr Dtype boolean{"bool", 1, Kind::boolean};
inline constexpr Dtype c64{"complex64", 8, Kind::complex}, c128{"complex128", 16, Kind::complex};

/// The dtype of a C++ type. 16- and 8-bit floats have none in C++17: name them.
template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return boolean;
  else if constexpr (std::is_same_v<T, float>)
    return f32;
  else if constexpr (std::is_same_v<T, double>)
    return f64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return c64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return c128;
  else {
    static_assert(std::is_integral_v<T>, "name the element type: w.write(path, data, shape, parity::probe::bf16)");
    constexpr Dtype of_signed[] = {i8, i16, i32, i64}, of_unsigned[] = {u8, u16, u32, u64};
    constexpr int log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? of_signed[log] : of_unsigned[log];
  }
}

/// Sizes or strides of an argument: looked at, not copied, so that a writer that is off costs nothing.
class Sizes {
 public:
  Sizes() = default;
  Sizes(std::initializer_list<std::int64_t> sizes) : Sizes(sizes.begin(), sizes.size()) {}  // lives as long as the call
  Sizes(const std::vector<std::int64_t>& sizes) : begin_(sizes.data()), size_(sizes.size()) {}
  Sizes(const std::int64_t* begin, std::size_t size) : begin_(begin), size_(size) {}

  std::size_t size() const { return size_; }
  std::int64_t operator[](std::size_t i) const { return begin_[i]; }
  std::vector<std::int64_t> vector() const { return {begin_, begin_ + size_}; }

  /// Their product; throws std::invalid_argument when no memory can hold that many.
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < size_; ++i) {
      if (begin_[i] > 0 && count > (std::int64_t{1} << 58) / begin_[i])
        throw std::invalid_argument("parity_probe: a shape of impossible size");
      count *= begin_[i];
    }
    return count;
  }

 private:
  const std::int64_t* begin_ = nullptr;
  std::size_t size_ = 0;
};

// Where a default argument is evaluated, for C++17: the caller's place, as std::source_location has it from C++20 on.
#if defined(__GNUC__) || defined(__clang__) || (defined(_MSC_VER) && _MSC_VER >= 1926)
#define PARITY_PROBE_FILE __builtin_FILE()
#define PARITY_PROBE_LINE __builtin_LINE()
#define PARITY_PROBE_FUNCTION __builtin_FUNCTION()
#else
#define PARITY_PROBE_FILE ""
#define PARITY_PROBE_LINE 0
#define PARITY_PROBE_FUNCTION ""
#endif

/// A line of source. Of the file's path the last part alone is recorded: the rest tells whose machine it was.
struct Line {
  const char* file = "";  // empty: none is recorded
  int line = 0;
  const char* function = "";

  static constexpr Line here(const char* file = PARITY_PROBE_FILE, int line = PARITY_PROBE_LINE,
                             const char* function = PARITY_PROBE_FUNCTION) {
    return {file, line, function};
  }

  /// "attention.cpp:88 in forward"; "" for none.
  std::string text() const {
    const std::string_view path = file;
    const std::size_t slash = path.find_last_of("/\\");
    std::string text(slash == std::string_view::npos ? path : path.substr(slash + 1));
    if (text.empty()) return text;
    text += ":" + std::to_string(line);
    return *function == '\0' ? text : text + " in " + function;
  }
};

#undef PARITY_PROBE_FILE
#undef PARITY_PROBE_LINE
#undef PARITY_PROBE_FUNCTION

enum class Role : std::uint8_t { output, input, weight };

inline const char* name_of(Role role) {
  return role == Role::output ? "output" : role == Role::input ? "input" : "weight";
}

}  // namespace parity::probe
