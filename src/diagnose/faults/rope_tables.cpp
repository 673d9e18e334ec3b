// Tables of a rotary embedding, stored or computed: another base, other positions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

bool same_base(double a, double b) { return std::abs(a / b - 1) < kRecognition.listed; }

bool is_listed(double base) {
  return std::any_of(kRopeBases.begin(), kRopeBases.end(), [base](double other) { return same_base(base, other); });
}

// A base to try: one that libraries use, or a factor of the recorded one.
struct OtherBase {
  double number;
  bool is_factor;

  std::string words() const { return fmt::format("base {}{:g}", is_factor ? "x " : "", number); }

  double of(double own) const {
    const double base = is_factor ? own * number : number;
    if (number == 1 + kTried) return base;
    if (same_base(base, own) || (is_factor && is_listed(base)))
      throw std::runtime_error("the recorded base, or one that is tried by itself");
    return base;
  }
};

// Any other one, whose size is estimated.
constexpr OtherBase kSlightlyOther{1 + kTried, true};
constexpr const char* kDiffers = "base differs, tried x 1.01";

std::vector<OtherBase> other_bases() {
  std::vector<OtherBase> bases;
  for (const double base : kRopeBases) bases.push_back({base, false});
  for (const double factor : kFactorsOfBases) bases.push_back({factor, true});
  return bases;
}

enum class Table { none, cosines, sines };

// Row 0 is angle 0: cosines are all one, sines all zero.
Table table_kind(const at::Tensor& t) {
  const at::Tensor first = t.select(0, 0);
  if (t.abs().max().item<double>() > kRecognition.table_bound) return Table::none;
  if (first.eq(1).all().item<bool>()) return Table::cosines;
  return first.eq(0).all().item<bool>() && t.ne(0).any().item<bool>() ? Table::sines : Table::none;
}

Table table_of(const OpCall& call) {
  const Table kind = table_kind(call.tensor("self"));
  if (kind == Table::none) throw std::runtime_error("no table");
  return kind;
}

// The table with frequencies of another base, by its second row: f_i = base^(-i / h), so that the first two frequencies
// give the base.
at::Tensor with_base(const at::Tensor& table, Table kind, const OtherBase& base) {
  const at::Tensor row = table.select(0, 1).to(at::kDouble), f = kind == Table::cosines ? row.acos() : row.asin();
  const int64_t n = f.size(0);
  const bool pairs = n > 1 && std::abs((f[0] - f[1]).item<double>()) < kRecognition.equal_frequencies;
  const double first = f[0].item<double>(), next = f[pairs ? 2 : 1].item<double>();
  if (n < 4 || !(next > 0) || !(first > 0)) throw std::runtime_error("one frequency only");
  const double own = std::pow(first / next, static_cast<double>(pairs ? n / 2 : n));
  const at::Tensor other = f.pow(std::log(base.of(own)) / std::log(own));
  const at::Tensor angles = at::arange(table.size(0), other.options()).unsqueeze(1) * other;
  return kind == Table::cosines ? angles.cos() : angles.sin();
}

// Stored tables of cosines or sines, one row a position: another base, other positions.
void stored_table(const ProgramIndex& program, int index, Hypotheses& to) {
  const Leaf* leaf = program.leaf(program.argument(index, 0));
  if (leaf == nullptr || leaf->value.shape.size() != 2 || leaf->value.shape[0] < 2 ||
      !at::isFloatingType(leaf->value.dtype))
    return;
  const auto with = [](const OtherBase& base) -> Rewrite {
    return [base](OpCall& call) {
      Results results = call.run_again();
      const Table kind = table_of(call);
      for (auto& result : results) result = with_base(*result, kind, base);
      return results;
    };
  };
  for (const OtherBase& base : other_bases()) add_fault(to, program, index, "RoPE theta", base.words(), with(base));
  add_fault(to, program, index, "RoPE theta", kDiffers, with(kSlightlyOther), false);
  for (const int64_t by : {-1, 1})
    add_fault(to, program, index, "position off by one", fmt::format("positions {:+d}", by), [by](OpCall& call) {
      Results results = call.run_again();
      table_of(call);
      for (auto& result : results) result = result->roll({by}, {0});
      return results;
    });
}

// Positions of one axis read from another row on: of what the table holds where it has more, its rows in a circle
// otherwise.
void shifted_rows(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.leaf_behind(program.argument(index, 0), 1) == nullptr || program.number(index, 4).value_or(1) != 1)
    return;
  for (const int64_t by : {1, -1})
    add_fault(to, program, index, "position off by one", fmt::format("positions of one axis {:+d}", by),
              [by](OpCall& call) {
                const at::Tensor self = call.tensor("self");
                const int64_t axis = at::maybe_wrap_dim(call.value("dim").toInt(), self.dim());
                if (axis > 0 && axis == self.dim() - 1) throw std::runtime_error("not an axis of positions");
                const int64_t rows = call.run_again()[0]->size(axis);
                const c10::IValue first = call.value("start");
                const int64_t given = first.isInt() ? first.toInt() : 0;
                const int64_t start = given < 0 ? given + self.size(axis) : given;
                if (start + by < 0 || start + by + rows > self.size(axis))
                  return Results{self.slice(axis, start, start + rows).roll({-by}, {axis})};
                return Results{self.slice(axis, start + by, start + by + rows)};
              });
}

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
  bool scaled() const { return (plain() / each - 1).abs().max().item<double>() >= kRecognition.listed; }

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
  if (!f.scaled()) throw std::runtime_error("not scaled as it is");
  return angles * (f.plain(std::log(base) / static_cast<double>(f.half)) / f.each);
}

struct AngleChange {
  const char* fault;
  std::string what;
  std::function<at::Tensor(const at::Tensor&)> of;
  bool fixed = true;
};

std::vector<AngleChange> angle_changes(const std::vector<int64_t>& shape) {
  const auto step = Frequencies::step_of;
  std::vector<AngleChange> changes{
      {"position off by one", "positions + 1", [step](const at::Tensor& a) { return a + step(a); }},
      {"position off by one", "positions - 1", [step](const at::Tensor& a) { return a - step(a); }}};
  if (shape.size() == 2)  // a time for each sample, by frequencies of which the first is 1
    for (const int64_t by : {-1, 1})
      changes.push_back({"position off by one", fmt::format("times {:+d}", by),
                         [by](const at::Tensor& a) { return a + by * a / a.narrow(-1, 0, 1); }});
  for (const OtherBase& base : other_bases())
    changes.push_back({"RoPE theta", base.words(), [base](const at::Tensor& a) { return rotated_by(a, base); }});
  changes.push_back({"RoPE theta", kDiffers, [](const at::Tensor& a) { return rotated_by(a, kSlightlyOther); }, false});
  changes.push_back({"RoPE theta", "frequencies by their base alone, none of them scaled", not_scaled});
  for (const double base : kRopeBases)
    changes.push_back({"RoPE theta", fmt::format("frequencies of base {:g}, none of them scaled", base),
                       [base](const at::Tensor& a) { return not_scaled_of(a, base); }});
  return changes;
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
  for (const AngleChange& change : angle_changes(value->shape)) {
    const Rewrite rewrite = [of = change.of](OpCall& call) {
      call.set("self", of(call.tensor("self")));
      return call.run_again();
    };
    add_fault(to, program, index, change.fault, change.what, rewrite, change.fixed);
    if (other >= 0) to.back().deviation.rewrites[other] = rewrite;
  }
}

constexpr int kStepsToAngles = 4;  // twice side by side, unsqueezed, in another dtype

// Are they positions by frequencies, that cos and sin are taken of further on?
bool makes_angles(const ProgramIndex& program, int index) {
  const Op& op = program.op(index);
  if (op.kind != "mul" && op.kind != "bmm" && op.kind != "mm") return false;
  if (op.outputs.empty() || !op.outputs[0] || op.outputs[0]->shape.size() < 2) return false;
  const auto read_by = [&](const char* kind, int steps) { return program.ahead(index, kind, steps) >= 0; };
  const bool read_itself = read_by("cos", 1) || read_by("sin", 1);  // angles() offers the same
  return !read_itself && (read_by("cos", kStepsToAngles) || read_by("sin", kStepsToAngles));
}

// Is what op `index`, a cosine, is taken of made so?
bool are_made(const ProgramIndex& program, int index) {
  for (const char* kind : {"mul", "bmm", "mm"})
    if (const int made = program.behind(index, kind, kStepsToAngles); made >= 0 && makes_angles(program, made))
      return true;
  return false;
}

// Positions by frequencies, where angles are a module's result, or are read by more than one pair of cos and sin.
void made_angles(const ProgramIndex& program, int index, Hypotheses& to) {
  if (!makes_angles(program, index)) return;
  const Op& op = program.op(index);
  for (const AngleChange& change : angle_changes(op.outputs[0]->shape))
    add_fault(
        to, program, index, change.fault, change.what,
        [of = change.of](OpCall& call) { return Results{of(*call.run_again()[0])}; }, change.fixed);
}

}  // namespace

void rope_table_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const size_t before = to.size();
  if (op.kind == "split_with_sizes" || op.kind == "split") stored_table(program, index, to);
  if (op.kind == "slice") shifted_rows(program, index, to);
  made_angles(program, index, to);
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // cosines and sines, queries and keys
  if (op.kind != "cos" && op.kind != "sin") return;
  const size_t first = to.size();
  angles(program, index, to);
  // together with the op that made them, they would be changed twice
  for (size_t i = first; i < to.size(); ++i) to[i].joint = !are_made(program, index);
}

}  // namespace parity
