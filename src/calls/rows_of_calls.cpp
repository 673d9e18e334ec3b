#include "calls/rows_of_calls.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calls/call_shapes.hpp"
#include "calls/limits.hpp"
#include "calls/padding_tokens.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

// The axis of the tokens, of which a call has one: of length 1, or no more.
std::optional<size_t> axis_of_rows(const Shape& whole, const Shape& row) {
  for (size_t axis = whole.size() > 2 ? 1 : 0; axis + 1 < whole.size(); ++axis) {  // the first is the batch's
    Shape kept = whole, gone = whole;
    kept[axis] = 1;
    gone.erase(gone.begin() + static_cast<ptrdiff_t>(axis));
    if (whole[axis] > 1 && (row == kept || row == gone)) return axis;
  }
  return std::nullopt;
}

// Evenly out of all.
at::Tensor some_features(const at::Tensor& value) {
  const auto step = static_cast<int64_t>(static_cast<double>(value.size(-1)) / kCallLimits.features);
  return value.slice(-1, 0, value.size(-1), std::max<int64_t>(step, 1)).to(at::kDouble);
}

// Places of the rows along the axis that are as this one but for roundings.
at::Tensor near_rows(const at::Tensor& whole, const at::Tensor& row, int64_t axis) {
  const auto squares = [axis](const at::Tensor& value) { return value.square().movedim(axis, 0).flatten(1).sum(1); };
  return (squares(whole - row) < squares(row) * std::pow(kPairLimits.content.same, 2)).nonzero();
}

// A value of the reference, and the port's tensors of its name, each a row along the axis of the tokens.
struct Rows {
  size_t boundary = 0;
  int64_t axis = 0, tokens = 0;
  Shape one;                    // of one token
  std::vector<size_t> tensors;  // by call

  std::pair<size_t, int64_t> key() const { return {tensors.size(), tokens}; }
};

using Places = std::vector<int64_t>;

class RowsOfCalls {
 public:
  RowsOfCalls(Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors,
              std::vector<std::string>& notes)
      : reference_(reference), dump_(dump), tensors_(tensors), notes_(notes) {}

  PartBoundaries run(const std::vector<CallShapes>& paths) {
    std::vector<Rows> all;
    for (const CallShapes& path : paths)
      if (auto rows = rows_of(path)) all.push_back(std::move(*rows));
    std::map<std::pair<size_t, int64_t>, Places> told;  // by calls and tokens: what one path tells holds for others
    for (const Rows& rows : all)
      if (const auto places = told.contains(rows.key()) ? std::nullopt : places_of(rows))
        told.emplace(rows.key(), *places);
    for (const Rows& rows : all)
      if (const auto places = told.find(rows.key()); places != told.end())
        join(rows, places->second);
      else
        leave_last(rows);
    const PartBoundaries changed = go_on_from_parts(reference_, packed_);
    size_t c = 0;
    std::erase_if(tensors_, [&](const CandidateTensor&) { return gone_.contains(c++); });
    return changed;
  }

 private:
  std::optional<Rows> rows_of(const CallShapes& path) const {
    if (path.own || path.reference.times != 1 || path.port.times < 2 || !path.one_dtype || path.of_range)
      return std::nullopt;
    const auto b = reference_.find(path.name, 0);
    const auto is_like_first = [&](const auto& call) { return call.second == path.port.first(); };
    if (!b || reference_.boundaries[*b].value.key.empty() || !std::ranges::all_of(path.port.shapes, is_like_first))
      return std::nullopt;
    const Shape& whole = reference_.boundaries[*b].value.shape;
    const auto axis = axis_of_rows(whole, path.port.first());
    if (!axis || path.port.shapes.size() > static_cast<size_t>(whole[*axis])) return std::nullopt;
    Rows rows{*b, static_cast<int64_t>(*axis), whole[*axis], whole, {}};
    rows.one[*axis] = 1;
    for (const auto& [call, c] : path.tensors) rows.tensors.push_back(c);
    return rows;
  }

  // By call the place of its row, each behind that of the call before; nullopt: one is near to none, or to several.
  std::optional<Places> places_of(const Rows& rows) const {
    const Value& value = reference_.boundaries[rows.boundary].value;
    if (!at::isFloatingType(value.dtype) || !at::isFloatingType(tensors_[rows.tensors.front()].dtype))
      return std::nullopt;
    const at::Tensor whole = some_features(stored_value(dump_, value));
    Places places;
    for (const size_t c : rows.tensors) {
      const at::Tensor near = near_rows(whole, some_features(tensors_[c].load().reshape(rows.one)), rows.axis);
      if (near.numel() != 1 || (!places.empty() && near.item<int64_t>() <= places.back())) return std::nullopt;
      places.push_back(near.item<int64_t>());
    }
    return places;
  }

  void join(const Rows& rows, const Places& places) {
    PackedParts packed{{}, rows.axis};
    for (const int64_t place : places) packed.parts.push_back({{rows.axis, rows.tokens, place, 1}});
    const Boundary& boundary = reference_.boundaries[rows.boundary];
    CandidateTensor& joined = tensors_[rows.tensors.front()];
    joined.shape = packed_shape(boundary.value.shape, packed);
    joined.load = [loads = loads_of(rows), one = rows.one, axis = rows.axis] {
      std::vector<at::Tensor> loaded;
      for (const auto& load : loads) loaded.push_back(load().reshape(one));
      return at::cat(loaded, axis);
    };
    gone_.insert(rows.tensors.begin() + 1, rows.tensors.end());
    packed_.emplace(rows.boundary, std::move(packed));
    notes_.push_back(fmt::format("the port has one of {} tokens in each of {} calls of {}: rows {} are compared",
                                 rows.tokens, places.size(), boundary.path.empty() ? "(result)" : boundary.path,
                                 fmt::join(places, ", ")));
  }

  void leave_last(const Rows& rows) {
    tensors_[rows.tensors.back()].call = 0;
    gone_.insert(rows.tensors.begin(), rows.tensors.end() - 1);
  }

  std::vector<std::function<at::Tensor()>> loads_of(const Rows& rows) const {
    std::vector<std::function<at::Tensor()>> loads;
    for (const size_t c : rows.tensors) loads.push_back(tensors_[c].load);
    return loads;
  }

  Program& reference_;
  const Dump& dump_;
  std::vector<CandidateTensor>& tensors_;
  std::vector<std::string>& notes_;
  PartBoundaries packed_;
  std::set<size_t> gone_;  // tensors that are joined to another
};

}  // namespace

PartBoundaries join_rows_of_calls(Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors,
                                  const NameMap* map, std::vector<std::string>& notes) {
  return RowsOfCalls(reference, dump, tensors, notes).run(call_shapes(reference, tensors, map));
}

}  // namespace parity
