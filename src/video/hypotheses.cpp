// The table of what commonly goes wrong between a model's output and a video file.
#include <algorithm>
#include <cmath>

#include "video/diagnose.hpp"

namespace parity {
namespace {

double clipped(double v) { return std::clamp(v, 0.0, 1.0); }

struct ValueFault {
  const char *kind, *text;
  double (*value)(double);
};

constexpr ValueFault kValueFaults[] = {
    {"range", "candidate holds limited-range values (16-235) where the reference has full range",
     [](double v) { return (16 + 219 * v) / 255; }},
    {"range", "candidate was expanded from limited range (16-235) although it had full range",
     [](double v) { return clipped((255 * v - 16) / 219); }},
    {"range", "candidate's [0, 1] was taken for [-1, 1]: (x + 1) / 2 was applied once too often",
     [](double v) { return (v + 1) / 2; }},
    {"range", "candidate's [-1, 1] was taken for [0, 1]: (x + 1) / 2 is missing and negative values are clipped",
     [](double v) { return clipped(2 * v - 1); }},
    {"range", "candidate is inverted", [](double v) { return 1 - v; }},
    {"gamma", "candidate was linearised: gamma 2.2 applied once too often",
     [](double v) { return std::pow(clipped(v), 2.2); }},
    {"gamma", "candidate was gamma-encoded once too often (1/2.2)",
     [](double v) { return std::pow(clipped(v), 1 / 2.2); }},
};

struct ChannelOrder {
  const char* name;
  std::array<int, 3> order;
};
constexpr ChannelOrder kOrders[] = {
    {"BGR", {2, 1, 0}}, {"GRB", {1, 0, 2}}, {"RBG", {0, 2, 1}}, {"GBR", {1, 2, 0}}, {"BRG", {2, 0, 1}}};

}  // namespace

std::vector<ClipHypothesis> simple_hypotheses(int channels) {
  std::vector<ClipHypothesis> all;
  for (const ValueFault& fault : kValueFaults) {
    ClipHypothesis h{.kind = fault.kind, .text = fault.text};
    h.value.fill(fault.value);
    all.push_back(std::move(h));
  }
  if (channels == 3)
    for (const ChannelOrder& o : kOrders)
      all.push_back({.kind = "channels",
                     .text = std::string("candidate's channels are in the order ") + o.name,
                     .order = o.order});
  all.push_back({.kind = "flip", .text = "candidate is mirrored left to right", .flip_x = true});
  all.push_back({.kind = "flip", .text = "candidate is upside down", .flip_y = true});
  all.push_back({.kind = "flip", .text = "candidate is rotated by 180 degrees", .flip_x = true, .flip_y = true});
  return all;
}

}  // namespace parity
