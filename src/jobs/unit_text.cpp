// WorkUnits as text: every struct an array of its members. The bindings below do not compile when a struct gets a
// member that would not be written.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "core/error.hpp"
#include "jobs/unit.hpp"

namespace parity {
namespace {

using nlohmann::json;

// S: T or const T.
template <class S, class T>
concept Is = std::is_same_v<std::remove_const_t<S>, T>;

auto members(Is<WorkUnit> auto& s) {
  auto& [a, b, c, d] = s;
  return std::tie(a, b, c, d);
}
auto members(Is<Aside> auto& s) {
  auto& [a, b, c, d, e, f] = s;
  return std::tie(a, b, c, d, e, f);
}
auto members(Is<VariantCoverage> auto& s) {
  auto& [a, b, c, d, e, f, g] = s;
  return std::tie(a, b, c, d, e, f, g);
}
auto members(Is<OpResult> auto& s) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag] = s;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af,
                  ag);
}
auto members(Is<PairedBy> auto& s) {
  auto& [a, b, c, d, e] = s;
  return std::tie(a, b, c, d, e);
}
auto members(Is<Logic> auto& s) {
  auto& [a, b, c] = s;
  return std::tie(a, b, c);
}
auto members(Is<Stats> auto& s) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x] = s;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x);
}
auto members(Is<OracleStats> auto& s) {
  auto& [a, b, c, d, e, f, g] = s;
  return std::tie(a, b, c, d, e, f, g);
}
auto members(Is<Limit> auto& s) {
  auto& [a, b, c, d, e] = s;
  return std::tie(a, b, c, d, e);
}
auto members(Is<Explanation> auto& s) {
  auto& [a, b, c, d, e, f, g, h] = s;
  return std::tie(a, b, c, d, e, f, g, h);
}
auto members(Is<NamedChange> auto& s) {
  auto& [a, b, c] = s;
  return std::tie(a, b, c);
}
auto members(Is<Element> auto& s) {
  auto& [a, b, c] = s;
  return std::tie(a, b, c);
}
auto members(Is<Histogram> auto& s) {
  auto& [a, b, c] = s;
  return std::tie(a, b, c);
}
auto members(Is<DtypePath> auto& s) {
  auto& [a, b, c, d] = s;
  return std::tie(a, b, c, d);
}
auto members(Is<CastPlacement> auto& s) {
  auto& [a, b, c] = s;
  return std::tie(a, b, c);
}
auto members(Is<LogitPair> auto& s) {
  auto& [a, b, c, d, e, f] = s;
  return std::tie(a, b, c, d, e, f);
}
auto members(Is<LogitStats> auto& s) {
  auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = s;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
}
auto members(Is<TopFlip> auto& s) {
  auto& [a, b, c, d, e] = s;
  return std::tie(a, b, c, d, e);
}

[[noreturn]] void not_a_unit() { throw Error("is not a unit of this version"); }

// JSON has no number for these.
double special(const std::string& name) {
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "-inf") return -std::numeric_limits<double>::infinity();
  not_a_unit();
}

template <class T>
struct Packed {  // a number, a string or a struct
  static json pack(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? json(value) : json(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      json list = json::array();
      std::apply([&](const auto&... part) { (list.push_back(Packed<std::decay_t<decltype(part)>>::pack(part)), ...); },
                 members(value));
      return list;
    }
  }

  static void unpack(const json& from, T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      value = from.is_string() ? special(from.get<std::string>()) : from.get<T>();
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(from.get<int>());
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      value = from.get<T>();
    } else {
      auto parts = members(value);
      if (!from.is_array() || from.size() != std::tuple_size_v<decltype(parts)>) not_a_unit();
      size_t next = 0;
      std::apply([&](auto&... part) { (Packed<std::decay_t<decltype(part)>>::unpack(from[next++], part), ...); },
                 parts);
    }
  }
};

template <class T>
struct Packed<std::optional<T>> {  // a list of one or none: null may stand for a number
  static json pack(const std::optional<T>& value) {
    return value ? json::array({Packed<T>::pack(*value)}) : json::array();
  }
  static void unpack(const json& from, std::optional<T>& value) {
    if (!from.is_array() || from.size() > 1) not_a_unit();
    value.reset();
    if (!from.empty()) Packed<T>::unpack(from[0], value.emplace());
  }
};

template <class T>
struct Packed<std::vector<T>> {
  static json pack(const std::vector<T>& values) {
    json list = json::array();
    for (const T& value : values) list.push_back(Packed<T>::pack(value));
    return list;
  }
  static void unpack(const json& from, std::vector<T>& values) {
    if (!from.is_array()) not_a_unit();
    values.resize(from.size());
    for (size_t i = 0; i < values.size(); ++i) Packed<T>::unpack(from[i], values[i]);
  }
};

}  // namespace

std::string text_of(const WorkUnit& unit) {
  return Packed<WorkUnit>::pack(unit).dump(-1, ' ', false, json::error_handler_t::replace);
}

WorkUnit read_unit(const std::string& text) {
  WorkUnit unit;
  try {
    Packed<WorkUnit>::unpack(json::parse(text), unit);
  } catch (const json::exception&) {
    not_a_unit();
  }
  return unit;
}

}  // namespace parity
