#include "bench/timing.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace parity {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (int64_t kilobytes = 0; word == name && status >> kilobytes) return kilobytes * 1024;
  return 0;
}

}  // namespace

double Timing::minimum() const { return seconds.empty() ? first : *std::min_element(seconds.begin(), seconds.end()); }

double Timing::median() const {
  if (seconds.empty()) return first;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Timing time_runs(const std::function<void()>& work, int repeats, const ShareDone& progress) {
  Timing timing;
  const auto tell = [&](int runs) {
    if (progress) progress(runs / (repeats + 1.));
  };
  tell(0);
  timing.first = seconds_of(work);
  for (int i = 0; i < repeats; ++i) {
    tell(i + 1);
    timing.seconds.push_back(seconds_of(work));
  }
  tell(repeats + 1);
  return timing;
}

GrownMemory::GrownMemory() {
  std::ofstream("/proc/self/clear_refs") << "5\n";  // proc(5): resets VmHWM
  before_ = status_bytes("VmRSS:");
}

int64_t GrownMemory::peak() const { return std::max<int64_t>(0, status_bytes("VmHWM:") - before_); }

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace parity
