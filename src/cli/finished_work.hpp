// Where a comparison keeps what it has finished: for --resume, and for the other processes of a launch.
#pragma once
#include <future>
#include <memory>
#include <string>

#include "cli/compare_options.hpp"
#include "jobs/sides.hpp"
#include "jobs/unit_file.hpp"

namespace parity::cli {

/// SHA-256 of both sides, computed beside the comparison; "" where it is not `wanted`.
struct Digests {
  explicit Digests(const Sides& sides, bool wanted = true);

  bool known() const;
  void enter(Report& report) const;
  std::string text() const { return reference.get() + " " + candidate.get(); }

  std::shared_future<std::string> reference, candidate;
};

/// Beside --json, else in --out, else, with --resume or several processes, in the current folder; nullptr: nobody wants
/// it. Throws Error as UnitFile.
std::unique_ptr<UnitFile> finished_work(const CompareOptions& options, const Sides& sides, const Digests& digests);

}  // namespace parity::cli
