#include <fmt/format.h>

#include "gate/sinks.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

constexpr size_t kInFull = 20, kInList = 10, kInTable = 40;  // a screen or two; --json has them all

class GatePaint {
 public:
  explicit GatePaint(bool colour) : colour_(colour) {}
  std::string status(int exit, const std::string& text) const {
    return wrap(exit == 0 ? "32" : exit == 1 ? "1;31" : "33", text);
  }
  std::string change(Change c, const std::string& text) const {
    if (c == Change::worse) return wrap("1;31", text);
    if (c == Change::better || c == Change::same) return wrap("32", text);
    return wrap("33", text);
  }
  std::string bold(const std::string& text) const { return wrap("1", text); }
  std::string dim(const std::string& text) const { return wrap("2", text); }

 private:
  std::string wrap(const char* code, const std::string& text) const {
    return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  bool colour_;
};

std::string head_of(const RowChange& row) {
  return fmt::format("{} ({}, {})", plain(name_of(row.key)), plain(row.kind), plain(row.key.dtype));
}

std::string where_of(const RowChange& row) {
  if (row.source.empty() && row.candidate_source.empty()) return "";
  return fmt::format("reference {} · port {}", row.source.empty() ? "?" : row.source,
                     row.candidate_source.empty() ? "?" : row.candidate_source);
}

std::string in_full(const RowChange& row, const GatePaint& paint) {
  std::string out = fmt::format("{}  {}  {}\n", paint.change(row.change, pad_right(change_name(row.change), 9)),
                                paint.bold(head_of(row)), verdict_line(row));
  for (const std::string& line : {number_line(row), row.note, where_of(row)})
    if (!line.empty()) out += fmt::format("           {}\n", plain(line));
  if (!row.rerun.empty()) out += paint.dim(fmt::format("           again: {}", plain(row.rerun))) + "\n";
  return out;
}

std::string in_list(const RowChange& row, const GatePaint& paint) {
  std::string text = row.change == Change::paired
                         ? fmt::format("with {}, before with {}", row.candidate_now, row.candidate_was)
                     : row.change == Change::better ? number_line(row)
                                                    : row.note;
  if (row.was != row.now || row.change == Change::added)
    text = verdict_line(row) + (text.empty() ? "" : fmt::format("; {}", text));
  return fmt::format("{}  {}{}\n", paint.change(row.change, pad_right(change_name(row.change), 9)), head_of(row),
                     text.empty() ? "" : fmt::format(": {}", plain(text)));
}

std::string rows_of(const GateResult& result, Change change, size_t shown, const GatePaint& paint) {
  std::string out;
  size_t count = 0;
  for (const RowChange& row : result.rows)
    if (row.change == change && ++count <= shown)
      out += change == Change::worse ? in_full(row, paint) : in_list(row, paint);
  if (count > shown)
    out += fmt::format("… and {} more {}: --json lists them all\n", count - shown, change_name(change));
  return out;
}

}  // namespace

std::string gate_console(const GateResult& result, bool colour) {
  const GatePaint paint(colour);
  std::string out = paint.status(exit_status(result), gate_headline(result)) + "\n";
  for (const std::string& line : baseline_lines(result)) out += plain(line) + "\n";
  std::string rows = rows_of(result, Change::worse, kInFull, paint);
  for (const Change change :
       {Change::undecided, Change::vanished, Change::paired, Change::added, Change::accepted, Change::better})
    rows += rows_of(result, change, kInList, paint);
  if (!rows.empty()) out += fmt::format("\n{}\n", rows);
  for (const std::string& note : result.notes) out += fmt::format("note: {}\n", plain(note));
  return result.compared ? out + gate_totals(result) + "\n" : out;
}

std::string diff_console(const GateResult& result, bool colour) {
  const GatePaint paint(colour);
  std::string out = paint.status(exit_status(result), gate_headline(result)) + "\n";
  for (const std::string& line : baseline_lines(result)) out += plain(line) + "\n";
  std::string table;
  size_t changed = 0, width = 2;
  for (const RowChange& row : result.rows)
    if (row.change != Change::same && changed++ < kInTable) width = std::max(width, head_of(row).size());
  changed = 0;
  for (const RowChange& row : result.rows) {
    if (row.change == Change::same || ++changed > kInTable) continue;
    const std::string numbers = number_line(row);
    table += fmt::format("{}  {}  {}{}\n", paint.change(row.change, pad_right(change_name(row.change), 9)),
                         pad_right(head_of(row), width), verdict_line(row), numbers.empty() ? "" : "  " + numbers);
  }
  if (!table.empty())
    out += fmt::format("\n{}\n{}", paint.bold(fmt::format("change     {}  verdict and number", pad_right("op", width))),
                       table);
  if (changed > kInTable) out += fmt::format("… and {} more: --json lists them all\n", changed - kInTable);
  out += "\n";
  for (const std::string& note : result.notes) out += fmt::format("note: {}\n", plain(note));
  return out + gate_totals(result) + "\n";
}

}  // namespace parity
