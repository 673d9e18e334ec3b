// The score out of sample: each family judged under limits that the other families' benign pairs give.
#pragma once
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "judge/limits.hpp"

namespace parity {

/// A limit of size that benign changes are held below, so that they can calibrate it: their largest share of it. Every
/// other limit bounds a fault's name or a false-alarm rate, which benign pairs say nothing of, or was set by hand.
struct CalibratedLimit {
  std::string_view name;
  std::vector<Threshold Thresholds::*> factors;  // the limit is proportional to all of them together
};
inline constexpr size_t kCalibratedLimits = 5;
const std::array<CalibratedLimit, kCalibratedLimits>& calibrated_limits();

/// Measured / limit of the passing row that comes nearest to each, in their order; 0 where none is held below it.
using LimitShares = std::array<double, kCalibratedLimits>;
LimitShares limit_shares(const std::vector<OpResult>& rows);

/// What leaving out the family that uses most of a limit does to it. A limit is fitted as margin x largest share, the
/// margin being the shipped one's, so without that family it is `others / largest` times as large.
struct LeftOut {
  size_t limit = 0;    // index into calibrated_limits()
  std::string family;  // has the largest share; leaving out any other changes nothing
  double largest = 0, others = 0;
  bool fitted() const { return others > 0; }  // else no other family has a row under this limit: it stays as it is
};

/// By the benign pairs' shares of each family; limits under which no benign pair has a row are left out.
std::vector<LeftOut> leave_out(const std::map<std::string, LimitShares>& by_family);

/// Does leaving `family` out change a limit?
bool depends_on(const std::string& family, const std::vector<LeftOut>& effects);

/// The limits with `family` left out; `shipped` when nothing depends on it.
Thresholds limits_without(const std::string& family, const std::vector<LeftOut>& effects, const Thresholds& shipped);

}  // namespace parity
