// What a report of `run` and `compare` also holds when it is asked for: the two clips that the run made, and what
// changed since a baseline.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "core/result.hpp"

namespace parity::cli {

struct Attachments {
  std::vector<std::string> video;  // reference and candidate, or none
  std::optional<double> min_psnr, min_ssim;
  std::string baseline;
};

/// --video REF CAND, --min-psnr, --min-ssim, --baseline FILE.
void add_attachments(CLI::App& command, Attachments& attachments);

/// Throws Error for what can be told before the run: a file that is not there, a baseline that is none.
void check_attachments(const Attachments& attachments);

/// Measures the clips, their pictures into `folder` (none where it is ""), and holds the report against the baseline.
/// The clips count in the verdict; the baseline does not, that is for `gate` to say.
void attach(Report& report, const Attachments& attachments, const Common& common, const std::string& folder);

}  // namespace parity::cli
