#include "cli/interruption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace parity::cli {
namespace {

constexpr char kKind[] = "interruption";
constexpr std::chrono::seconds kBetweenCheckpoints(2);
constexpr int kRestOfTheTime = 20;  // writing takes at most a twentieth: a report of 5000 rows has 15 MB

volatile std::sig_atomic_t signalled = 0;

void note_signal(int) { signalled = 1; }

void listen(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second signal ends the program
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace

Interruption::Interruption() {
  signalled = 0;
  listen(note_signal);
}

Interruption::~Interruption() { listen(SIG_DFL); }

bool Interruption::asked() const { return signalled != 0; }

bool Checkpoints::operator()(const JobResult& so_far) {
  if (interruption_.asked()) return false;
  const auto begin = std::chrono::steady_clock::now();
  if (begin < next_ || so_far.rows.empty()) return true;
  write_(so_far);
  const auto end = std::chrono::steady_clock::now();
  next_ = end + std::max<std::chrono::steady_clock::duration>(kBetweenCheckpoints, kRestOfTheTime * (end - begin));
  return true;
}

OpResult interrupted_comparison(size_t rows) {
  return untrusted_row("(interrupted)", kKind,
                       fmt::format("the comparison did not run to its end: {} rows were compared, what comes after "
                                   "them was not",
                                   rows));
}

bool is_partial(const Report& report) {
  return std::any_of(report.ops.begin(), report.ops.end(), [](const OpResult& row) { return row.kind == kKind; });
}

}  // namespace parity::cli
