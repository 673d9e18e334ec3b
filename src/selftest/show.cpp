#include "selftest/show.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/markup.hpp"
#include "selftest/tables.hpp"

namespace parity {
namespace {

// Names to the left, numbers to the right, the last column as it is when it holds sentences.
std::string text_table(const Cells& cells, bool sentences = false) {
  std::vector<size_t> widths(cells.front().size(), 0);
  for (const auto& row : cells)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], plain(row[i]).size());
  std::string out;
  for (const auto& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const bool last = sentences && i + 1 == row.size();
      line += last ? plain(row[i]) : i < 2 ? pad_right(plain(row[i]), widths[i]) : pad_left(plain(row[i]), widths[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string markdown_table(const Cells& cells) {
  std::string out;
  for (size_t r = 0; r < cells.size(); ++r) {
    std::vector<std::string> row;
    for (const std::string& cell : cells[r]) row.push_back(markdown(cell));
    out += fmt::format("| {} |\n", fmt::join(row, " | "));
    if (r == 0) out += fmt::format("|{}\n", fmt::join(std::vector<std::string>(row.size(), "---|"), ""));
  }
  return out;
}

}  // namespace

std::string selftest_text(const SelftestResult& result, const OutOfSample* out) {
  std::string text = text_table(score_cells(result)) + "\n" + text_table(peer_cells(result), true) + "\n";
  if (out != nullptr)
    text += text_table(out_of_sample_cells(result, *out)) + "\n" + text_table(left_out_cells(*out)) + "\n" +
            what_is_fitted() + "\n\n";
  const auto wrong = complaints(result);
  for (const std::string& line : wrong) text += plain(line) + "\n";
  if (!wrong.empty()) text += "\n";
  return text + verdict_line(result) + "\n";
}

std::string selftest_markdown(const SelftestResult& result, const OutOfSample* out) {
  std::string text = fmt::format("# Score of the judge\n\n{}.\n\n", markdown(verdict_line(result)));
  for (const std::string& line : complaints(result)) text += fmt::format("- {}\n", markdown(line));
  text += fmt::format("\n{}\n## Other projects' rules on the same tensors\n\n{}", markdown_table(score_cells(result)),
                      markdown_table(peer_cells(result)));
  if (out == nullptr) return text;
  return text + fmt::format("\n## Out of sample\n\n{}\n\n{}\n{}", markdown(what_is_fitted()),
                            markdown_table(out_of_sample_cells(result, *out)), markdown_table(left_out_cells(*out)));
}

}  // namespace parity
