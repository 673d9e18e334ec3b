// The self test's result in cells and sentences, as the text and the Markdown show it. Computes nothing but shares.
#pragma once
#include <string>
#include <vector>

#include "selftest/judge.hpp"

namespace parity {

/// The first row is the head. Cells hold names out of a manifest: to be made plain where they are shown.
using Cells = std::vector<std::vector<std::string>>;

/// Per family and dtype, per family, per dtype, all: counts, each with its share's interval.
Cells score_cells(const SelftestResult& result);
/// Ours beside the peers' rules.
Cells peer_cells(const SelftestResult& result);
/// As shipped, and out of sample.
Cells out_of_sample_cells(const SelftestResult& shipped, const OutOfSample& out);
/// Which family each calibrated limit depends on, and what it is without that.
Cells left_out_cells(const OutOfSample& out);

/// "99.5 % (97.0 to 99.9)"; "not measured" of none.
std::string share_text(int hits, int trials);
/// "pass: recall …": all on one line.
std::string verdict_line(const SelftestResult& result);
/// One line for each pair that went wrong.
std::vector<std::string> complaints(const SelftestResult& result);
/// What stands below the out-of-sample table: what is fitted at all.
std::string what_is_fitted();

}  // namespace parity
