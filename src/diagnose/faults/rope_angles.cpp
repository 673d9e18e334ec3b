// Computed angles of a rotary embedding: another base, other positions, frequencies that are not scaled.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/rope_bases.hpp"
#include "diagnose/limits.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

// Of angles (…, positions, frequencies): f_i = base^(-i / half), each of them once, twice side by side, or all of them
// again (halves; a part of its own for each axis of an image).
struct Frequencies {
  explicit Frequencies(const at::Tensor& angles) : each(each_of(angles)) {
    const at::Tensor row = each.reshape({-1, each.size(-1)})[0].to(at::kCPU, at::kDouble).contiguous();
    const double* f = row.const_data_ptr<double>();
    const int64_t n = row.numel();
    while (side_by_side < n && f[side_by_side] == f[0]) ++side_by_side;
    int64_t end = side_by_side;  // of a part: frequencies fall, up to the first one of the next part
    while (end < n && f[end] <= f[end - 1]) ++end;
    half = end / side_by_side;
    if (half < 2) throw std::runtime_error("one frequency only");
    log_ratio = (each.narrow(-1, side_by_side, 1) / each.narrow(-1, 0, 1)).log().abs().flatten()[0].item<double>();
    if (!(log_ratio > 0) || !std::isfinite(log_ratio)) throw std::runtime_error("no frequencies");
  }

  static at::Tensor step_of(const at::Tensor& angles) { return angles.narrow(-2, 1, 1) - angles.narrow(-2, 0, 1); }
  // An image's second position has moved along one axis alone: there the smallest angle is that of position 1.
  static at::Tensor each_of(const at::Tensor& angles) {
    const at::Tensor step = step_of(angles).abs();
    if (step.ne(0).all().item<bool>()) return step;
    return angles.abs().masked_fill(angles.eq(0), std::numeric_limits<double>::infinity()).amin({-2}, true);
  }

  // Over the first one of their part, so that it does not matter by what the positions go up.
  at::Tensor relative() const {
    const at::Tensor place = at::arange(each.size(-1), each.options().dtype(at::kLong));
    return each / each.index_select(-1, place - place.remainder(side_by_side * half));
  }

  // The ratio of the first two gives the base, of which the last frequency is one over it where the exponents end at 1
  // (embeddings of times); before it otherwise.
  double base() const {
    const auto by = [this](int64_t steps) { return std::exp(log_ratio * static_cast<double>(steps)); };
    return !is_listed(by(half)) && is_listed(by(half - 1)) ? by(half - 1) : by(half);
  }

  // By their base alone: not scaled for longer texts, as YaRN and Llama 3 scale the slow ones.
  at::Tensor plain() const { return plain(log_ratio); }
  at::Tensor plain(double ratio) const {
    const at::Tensor place = at::arange(each.size(-1), each.options()).div(side_by_side).floor().remainder(half);
    return each.narrow(-1, 0, 1) * (-ratio * place).exp();
  }
  bool scaled() const { return scaled(plain()); }
  bool scaled(const at::Tensor& law) const {
    return (law / each - 1).abs().max().item<double>() >= kRecognition.listed;
  }

  at::Tensor each;
  int64_t side_by_side = 1, half = 0;
  double log_ratio = 0;
};

at::Tensor rotated_by(const at::Tensor& angles, const OtherBase& base) {
  const Frequencies f(angles);
  return angles * f.relative().pow(std::log(base.of(f.base())) / std::log(f.base()) - 1);
}

at::Tensor not_scaled(const at::Tensor& angles) {
  const Frequencies f(angles);
  if (!f.scaled()) throw std::runtime_error("not scaled as it is");
  return angles * (f.plain() / f.each);
}

// Where the scaling begins at the second frequency, the ratio of the first two does not give the base.
at::Tensor not_scaled_of(const at::Tensor& angles, double base) {
  const Frequencies f(angles);
  const at::Tensor law = f.plain(std::log(base) / static_cast<double>(f.half));
  if (!f.scaled() || !f.scaled(law)) throw std::runtime_error("not scaled as it is");  // perhaps rounded to half width
  return angles * (law / f.each);
}

// What one position more adds: the difference of the first two; of one alone, a token that is decoded, the angles over
// the first of them, whose frequency is 1 where none is scaled.
at::Tensor one_further(const at::Tensor& angles) {
  if (angles.size(-2) > 1) return Frequencies::step_of(angles);
  const at::Tensor first = angles.narrow(-1, 0, 1);
  if (first.eq(0).any().item<bool>()) throw std::runtime_error("position 0 says nothing of frequencies");
  return angles / first;
}

struct AngleChange {
  const char* fault;
  std::string what;
  std::function<at::Tensor(const at::Tensor&)> of;
  bool fixed = true;
  bool slight = false;  // like what rounding the frequencies does
};

// Frequencies base^(-i / n) for base^(-i / (n - 1)), and the other way round: what DDPM's authors and others wrote.
at::Tensor shifted(const at::Tensor& angles, bool to_whole) {
  const Frequencies f(angles);
  const auto n = static_cast<double>(f.half);
  return angles * f.relative().pow((to_whole ? (n - 1) / n : n / (n - 1)) - 1);
}

// A time for each sample, by frequencies of which the first is 1.
std::vector<AngleChange> other_times() {
  std::vector<AngleChange> changes;
  for (const int by : {-1, 1})
    changes.push_back({"position off by one", by < 0 ? "timesteps one less" : "timesteps one more",
                       [by](const at::Tensor& a) { return a + by * a / a.narrow(-1, 0, 1); }});
  return changes;
}

std::vector<AngleChange> timestep_changes() {
  std::vector<AngleChange> changes = other_times();
  for (const bool to_whole : {true, false})
    changes.push_back({"timestep frequencies", to_whole ? "no shift of their count" : "their count shifted by 1",
                       [to_whole](const at::Tensor& a) { return shifted(a, to_whole); }});
  for (const OtherBase& base : other_bases())
    changes.push_back(
        {"timestep frequencies", base.words(), [base](const at::Tensor& a) { return rotated_by(a, base); }});
  changes.push_back(
      {"timestep frequencies", kDiffers, [](const at::Tensor& a) { return rotated_by(a, kSlightlyOther); }, false});
  return changes;
}

std::vector<AngleChange> angle_changes(const std::vector<int64_t>& shape) {
  const bool times = shape.size() == 2;
  const auto step = times ? Frequencies::step_of : one_further;
  std::vector<AngleChange> changes{
      {"position off by one", "positions + 1", [step](const at::Tensor& a) { return a + step(a); }},
      {"position off by one", "positions - 1", [step](const at::Tensor& a) { return a - step(a); }}};
  if (times) std::ranges::move(other_times(), std::back_inserter(changes));
  for (const OtherBase& base : other_bases())
    changes.push_back({"RoPE theta", base.words(), [base](const at::Tensor& a) { return rotated_by(a, base); }});
  changes.push_back(
      {"RoPE theta", kDiffers, [](const at::Tensor& a) { return rotated_by(a, kSlightlyOther); }, false, true});
  changes.push_back({"RoPE theta", "frequencies by their base alone, none of them scaled", not_scaled, true, true});
  for (const double base : kRopeBases)
    changes.push_back({"RoPE theta", fmt::format("frequencies of base {:g}, none of them scaled", base),
                       [base](const at::Tensor& a) { return not_scaled_of(a, base); }, true, true});
  return changes;
}

// Do the values of op `index`, a cosine, enter a layer as they are, beside the sines? Rotary ones are multiplied.
bool embeds_timesteps(const ProgramIndex& program, int index, int steps = 6) {
  if (index < 0 || steps == 0) return false;
  const Op& op = program.op(index);
  if (op.outputs.empty() || !op.outputs[0]) return false;
  return std::ranges::any_of(program.consumers(op.outputs[0]->id), [&](int reader) {
    const Op& next = program.op(reader);
    if (reader <= index) return false;
    if (next.kind == "addmm" || next.kind == "mm" || next.kind == "linear") return true;
    const bool kept = next.view || only_moves(next.kind) || next.kind == "_to_copy";
    return kept && embeds_timesteps(program, reader, steps - 1);
  });
}

// What cos and sin are taken of.
void angles(const ProgramIndex& program, int index, Hypotheses& to) {
  const int64_t input = program.argument(index, 0);
  int other = -1;
  for (const int reader : program.consumers(input))
    if (reader != index && (program.op(reader).kind == "cos" || program.op(reader).kind == "sin")) other = reader;
  if (other >= 0 && other < index) return;  // offered at the first of the two
  const Value* value = program.value(input);
  if (value == nullptr || value->shape.size() < 2) return;
  const bool rounded = has_rounded_frequencies(program, index);
  for (const AngleChange& change :
       embeds_timesteps(program, index) ? timestep_changes() : angle_changes(value->shape)) {
    const Rewrite rewrite = [of = change.of](OpCall& call) {
      call.set("self", of(call.tensor("self")));
      return call.run_again();
    };
    add_fault(to, program, index, change.fault, change.what, rewrite, change.fixed);
    to.back().more_exact = rounded && change.slight;
    if (other >= 0) to.back().deviation.rewrites[other] = rewrite;
  }
}

// Angles that cos and sin are not taken of at once, for there angles() offers the same.
bool are_product(const ProgramIndex& program, int index) {
  return makes_angles(program, index, kStepsToAngles) && !makes_angles(program, index, 1);
}

// Is what op `index`, a cosine, is taken of made so?
bool are_made(const ProgramIndex& program, int index) {
  for (const std::string_view kind : kAngleProducts)
    if (const int made = program.behind(index, kind, kStepsToAngles); made >= 0 && are_product(program, made))
      return true;
  return false;
}

// Positions by frequencies, where angles are a module's result, or are read by more than one pair of cos and sin.
void made_angles(const ProgramIndex& program, int index, Hypotheses& to) {
  if (!are_product(program, index)) return;
  const bool rounded = has_rounded_frequencies(program, index);
  const int cosine = program.ahead(index, "cos", kStepsToAngles);
  for (const AngleChange& change :
       embeds_timesteps(program, cosine) ? timestep_changes() : angle_changes(program.op(index).outputs[0]->shape)) {
    add_fault(
        to, program, index, change.fault, change.what,
        [of = change.of](OpCall& call) { return Results{of(*call.run_again()[0])}; }, change.fixed);
    to.back().more_exact = rounded && change.slight;
  }
}

}  // namespace

void rope_angle_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const size_t before = to.size();
  made_angles(program, index, to);
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // queries and keys
  if (program.op(index).kind != "cos" && program.op(index).kind != "sin") return;
  const size_t first = to.size();
  angles(program, index, to);
  // together with the op that made them, they would be changed twice
  for (size_t i = first; i < to.size(); ++i) to[i].joint = !are_made(program, index);
}

}  // namespace parity
