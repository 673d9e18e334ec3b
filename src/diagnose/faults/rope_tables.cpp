// Stored tables of a rotary embedding: another base, other positions.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/rope_bases.hpp"
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

}  // namespace

void rope_table_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const size_t before = to.size();
  if (op.kind == "split_with_sizes" || op.kind == "split") stored_table(program, index, to);
  if (op.kind == "slice") shifted_rows(program, index, to);
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // cosines and sines
}

}  // namespace parity
