#include "weights/conventions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace parity {
namespace {

std::vector<int64_t> longer(at::IntArrayRef shape) {
  std::vector<int64_t> out;
  for (const int64_t n : shape)
    if (n != 1) out.push_back(n);
  return out;
}

bool same_axes(const Unit& a, const Unit& b) {
  std::vector<int64_t> x = longer(a.shape), y = longer(b.shape);
  std::sort(x.begin(), x.end()), std::sort(y.begin(), y.end());
  return x == y;
}

// Only one permutation gives the reference's lengths.
bool shape_tells(const Unit& a) {
  std::vector<int64_t> x = longer(a.shape);
  std::sort(x.begin(), x.end());
  return std::adjacent_find(x.begin(), x.end()) == x.end();
}

std::string key_of(const Unit& r, const Unit& c) {
  return fmt::format("{} -> {}, {} axes", r.name.leaf, c.name.leaf, longer(r.shape).size());
}

std::string form_key(const Unit& r, const Unit& c) { return r.name.form + " -> " + c.name.form; }

int total(const std::map<std::string, int>& counts) {
  int all = 0;
  for (const auto& [text, count] : counts) all += count;
  return all;
}

std::pair<std::string, int> most(const std::map<std::string, int>& counts) {
  std::pair<std::string, int> best{"", 0};
  for (const auto& [text, count] : counts)
    if (count > best.second) best = {text, count};
  return best;
}

}  // namespace

std::string order_text(const Unit& reference, const Unit& candidate, const Order& order) {
  if (order.as_is())
    return longer(reference.shape) == longer(candidate.shape) || !same_axes(reference, candidate) ? "" : "reshaped";
  const std::vector<int64_t>& axes = order.candidate.empty() ? order.reference : order.candidate;
  const std::vector<int64_t>& shape = order.candidate.empty() ? reference.shape : candidate.shape;
  std::vector<int64_t> rank;  // of the axis among the long ones
  for (const int64_t axis : axes)
    if (shape[axis] != 1)
      rank.push_back(std::count_if(shape.begin(), shape.begin() + axis, [](int64_t n) { return n != 1; }));
  return fmt::format("{}", fmt::join(rank, ","));
}

void Conventions::learn(const Unit& reference, const Unit& candidate, const Order& order) {
  if (!same_axes(reference, candidate) || longer(reference.shape).size() < 2) return;
  const std::string text = order_text(reference, candidate, order);
  ++(shape_tells(reference) ? told_ : untold_)[key_of(reference, candidate)][text];
  ++by_form_[form_key(reference, candidate)][text];
}

std::optional<Order> Conventions::expected(const Unit& reference, const Unit& candidate, std::string& why) const {
  if (!same_axes(reference, candidate) || longer(reference.shape).size() < 2) return std::nullopt;
  std::optional<std::string> text;
  const auto told = told_.find(key_of(reference, candidate));
  if (told != told_.end() && told->second.size() == 1) {
    text = told->second.begin()->first;
    why = fmt::format("all {} others ({}) whose shape tells", total(told->second), told->first);
  }
  if (!text)
    for (const auto* table : {&by_form_, &untold_}) {
      const auto found =
          table->find(table == &by_form_ ? form_key(reference, candidate) : key_of(reference, candidate));
      if (text || found == table->end()) continue;
      const auto [order, count] = most(found->second);
      if (count < 3 || 3 * count < 2 * total(found->second)) continue;
      text = order;
      why = fmt::format("{} of {} others of such names", count, total(found->second));
    }
  if (!text && reference.name.leaf == candidate.name.leaf && told == told_.end()) {
    text = "";
    why = "the names, which are those of the reference";
  }
  if (!text) return std::nullopt;
  for (const Order& order : orders_between(candidate.shape, reference.shape))
    if (order_text(reference, candidate, order) == *text) return order;
  return std::nullopt;
}

}  // namespace parity
