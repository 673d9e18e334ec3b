// Looking after the other processes of a launch.
#include <fmt/format.h>

#include "core/error.hpp"
#include "jobs/unit_file.hpp"

namespace parity {
namespace {

constexpr std::chrono::seconds kToCome(60);              // processes of one launch start together, on slow disks too
constexpr std::chrono::milliseconds kBetweenLooks(100);  // a launcher may leave a second before it ends everything

}  // namespace

// From a thread of its own: a launcher ends everybody soon after one was killed, and someone should say which.
void UnitFile::watch() {
  std::unique_lock guard(mutex_);
  while (!ending_ && !lost_) {
    wake_.wait_for(guard, kBetweenLooks);
    try {
      lines_.alone([&] { read_new(); });
      look_around();
    } catch (const Error& error) {
      broken_ = error.what();
      lost_ = true;
    }
    wake_.notify_all();  // after every look: the last one is what `close` waits for
  }
}

void UnitFile::look_around() {
  if (closed_) return;
  if (options_.launch.rank > 0) return look_after(0);
  for (int rank = 1; rank < options_.launch.size && !lost_; ++rank) look_after(rank);
}

void UnitFile::look_after(int rank) {
  const bool first = rank == 0;
  if (left_.contains(rank) || failed_.contains(rank)) {
    if (first) lost_ = true;  // it has said itself what there was to say
    if (!first && failed_.contains(rank)) lose(fmt::format("rank {} gave up", rank));
    return;
  }
  if (!first && !here_.contains(rank)) {
    if (std::chrono::steady_clock::now() - start_ > kToCome)
      lose(fmt::format("rank {} of {} did not come within {} s; all ranks need the same file system", rank,
                       options_.launch.size, kToCome.count()));
    return;
  }
  if (killed(rank)) lose(fmt::format("rank {} was killed", rank));
}

bool UnitFile::killed(int rank) {
  if (lines_.alive(rank)) return false;
  lines_.alone([&] { read_new(); });  // it may have left in between
  return !left_.contains(rank) && !failed_.contains(rank);
}

// A launcher that ends the others at once (Open MPI on a busy machine: within a few ms) leaves `watch` no time to look.
void UnitFile::look_back() {
  if (options_.launch.rank > 0 && killed(0)) return lose("rank 0 was killed");
  for (int rank = 1; options_.launch.rank == 0 && rank < options_.launch.size && !lost_; ++rank)
    if (here_.contains(rank) && killed(rank)) lose(fmt::format("rank {} was killed", rank));
}

void UnitFile::lose(const std::string& why) {
  lost_ = true;
  if (options_.launch.rank <= 1)  // one line, whoever it was
    options_.tell(fmt::format("{}; what is finished is kept in {}: go on with --resume", why, options_.file.string()));
}

}  // namespace parity
