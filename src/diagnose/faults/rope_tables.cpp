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
at::Tensor with_base(const at::Tensor& table, Table kind, double theta) {
  const at::Tensor row = table.select(0, 1).to(at::kDouble), f = kind == Table::cosines ? row.acos() : row.asin();
  const int64_t n = f.size(0);
  const bool pairs = n > 1 && std::abs((f[0] - f[1]).item<double>()) < kRecognition.equal_frequencies;
  const double first = f[0].item<double>(), next = f[pairs ? 2 : 1].item<double>();
  if (n < 4 || !(next > 0) || !(first > 0)) throw std::runtime_error("one frequency only");
  const double own = std::pow(first / next, static_cast<double>(pairs ? n / 2 : n));
  const at::Tensor other = f.pow(std::log(theta) / std::log(own));
  const at::Tensor angles = at::arange(table.size(0), other.options()).unsqueeze(1) * other;
  return kind == Table::cosines ? angles.cos() : angles.sin();
}

// Stored tables of cosines or sines, one row a position: another base, other positions.
void stored_table(const ProgramIndex& program, int index, Hypotheses& to) {
  const Leaf* leaf = program.leaf(program.argument(index, 0));
  if (leaf == nullptr || leaf->value.shape.size() != 2 || leaf->value.shape[0] < 2 ||
      !at::isFloatingType(leaf->value.dtype))
    return;
  for (const double theta : {256., 1e3, 5e3, 1e4, 2e4, 5e4, 1e5, 5e5, 1e6})
    add_fault(to, program, index, "RoPE theta", fmt::format("base {:g}", theta), [theta](OpCall& call) {
      Results results = call.run_again();
      const Table kind = table_of(call);
      for (auto& result : results) result = with_base(*result, kind, theta);
      return results;
    });
  for (const int64_t by : {-1, 1})
    add_fault(to, program, index, "position off by one", fmt::format("positions {:+d}", by), [by](OpCall& call) {
      Results results = call.run_again();
      table_of(call);
      for (auto& result : results) result = result->roll({by}, {0});
      return results;
    });
}

// One axis of positions read from another row on.
void shifted_rows(const ProgramIndex& program, int index, Hypotheses& to) {
  const int made = program.producer(program.argument(index, 0));
  const bool table = program.leaf(program.argument(index, 0)) != nullptr ||
                     (made >= 0 && program.op(made).view && program.leaf(program.argument(made, 0)) != nullptr);
  if (!table || program.number(index, 1).value_or(0) != 0) return;
  add_fault(to, program, index, "position off by one", "positions of one axis + 1", [](OpCall& call) {
    const at::Tensor self = call.tensor("self");
    const int64_t rows = call.run_again()[0]->size(0);
    if (self.size(0) <= rows) return Results{self.slice(0, 0, rows).roll({-1}, {0})};
    return Results{self.slice(0, 1, rows + 1)};
  });
}

// Angles (positions, frequencies): what cos and sin are taken of.
void angles(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const int64_t input = program.argument(index, 0);
  int other = -1;
  for (const int reader : program.consumers(input))
    if (reader != index && (program.op(reader).kind == "cos" || program.op(reader).kind == "sin")) other = reader;
  if (other >= 0 && other < index) return;  // offered at the first of the two
  const Value* value = program.value(input);
  if (value == nullptr || value->shape.size() < 2) return;
  const auto add = [&](const char* fault, const std::string& what,
                       const std::function<at::Tensor(const at::Tensor&)>& change) {
    FaultHypothesis h{fault, fmt::format("{} at {}", what, op.path), Gate::logic, true, {}};
    const auto rewrite = [change](OpCall& call) {
      call.set("self", change(call.tensor("self")));
      return call.run_again();
    };
    h.deviation.rewrites[index] = rewrite;
    if (other >= 0) h.deviation.rewrites[other] = rewrite;
    to.push_back(std::move(h));
  };
  const auto step = [](const at::Tensor& a) { return (a.narrow(-2, 1, 1) - a.narrow(-2, 0, 1)); };
  add("position off by one", "positions + 1", [step](const at::Tensor& a) { return a + step(a); });
  add("position off by one", "positions - 1", [step](const at::Tensor& a) { return a - step(a); });
  for (const double theta : {1e4, 1e5, 1.5e5, 2.5e5, 5e5, 1e6})
    add("RoPE theta", fmt::format("base {:g}", theta), [step, theta](const at::Tensor& a) {
      const at::Tensor f = step(a).abs();
      const int64_t n = f.size(-1);
      if (n < 2 || a.size(-2) < 2) throw std::runtime_error("one frequency only");
      // f_i = base^(-i/h): the ratio of the first two gives the base.
      const at::Tensor ratio = (f.narrow(-1, 1, 1) / f.narrow(-1, 0, 1)).log().abs();
      const at::Tensor flat = ratio.flatten();
      const double h_step = flat[0].item<double>();
      if (!(h_step > 0)) throw std::runtime_error("no frequencies");
      const int64_t half = f.select(-1, 0).equal(f.select(-1, n / 2)) ? n / 2 : n;  // cat(angles, angles)
      const double own = std::exp(h_step * static_cast<double>(half));
      return a * f.pow(std::log(theta) / std::log(own) - 1);
    });
}

}  // namespace

void rope_table_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const size_t before = to.size();
  if (op.kind == "split_with_sizes" || op.kind == "split") stored_table(program, index, to);
  if (op.kind == "slice") shifted_rows(program, index, to);
  if (op.kind == "cos" || op.kind == "sin") angles(program, index, to);
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // cosines and sines, queries and keys
}

}  // namespace parity
