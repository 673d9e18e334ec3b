#include "core/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/plain.hpp"

namespace parity {

Progress::Progress(int64_t steps, bool quiet)
    : steps_(std::max<int64_t>(steps, 1)),
      enabled_(!quiet && isatty(STDERR_FILENO)),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::step(const std::string& what) {
  done_ = std::min(done_ + 1, steps_ - 1);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!enabled_ || seconds < 1) return;
  const double share = static_cast<double>(done_) / static_cast<double>(steps_);
  const std::string eta = done_ > 0 ? fmt::format("{:.0f} s left", seconds / share - seconds) : "";
  clear();
  const auto filled = static_cast<size_t>(24 * share);
  fmt::print(stderr, "[{}{}] {}/{} {}  {}", std::string(filled, '#'), std::string(24 - filled, '.'), done_ + 1, steps_,
             eta, plain(what.substr(0, 60)));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void ShareBar::operator()(double done) {
  constexpr int kParts = 100;
  if (!progress_) progress_.emplace(kParts, quiet_);
  for (; shown_ < static_cast<int>(kParts * done); ++shown_) progress_->step(what_);
}

ShareDone part_of(const ShareDone& whole, double begin, double end) {
  if (!whole) return nullptr;
  return [whole, begin, end](double done) { whole(begin + (end - begin) * done); };
}

}  // namespace parity
