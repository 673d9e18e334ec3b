// parity-check watch: a running port that streams its tensors, judged while it runs.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/command.hpp"
#include "cli/compare_options.hpp"
#include "cli/interruption.hpp"
#include "cli/print.hpp"
#include "cli/report_on.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "jobs/live_judge.hpp"
#include "jobs/live_port.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAgain(100);  // whether the program was interrupted

// Tensors that a port may be ahead of what is judged (--stop), or half as many as are judged: each look replays all
// that came before, and so all looks together take three times as long as the last.
constexpr size_t kAhead = 32;

struct WatchOptions {
  CompareOptions compare;  // with the address in place of a candidate's file
  std::string listen = "127.0.0.1:7077";
  bool stop = false;
};

// How a stream ended.
struct Ending {
  std::optional<OpResult> divergence;  // the first, where one was seen while the port ran
  bool complete = false, stopped = false, interrupted = false;
  nlohmann::json head;
};

class Watcher {
 public:
  Watcher(Sides& sides, LivePort& port, const WatchOptions& options)
      : sides_(sides), port_(port), options_(options), judge_(sides, options.compare.layer) {
    if (!options.compare.map.empty()) sides_.map = read_map(options.compare.map);
  }

  /// Until nothing more comes: takes what arrives and judges it, each time after at least as long as that took, or at
  /// once where the port waits for it (--stop).
  Ending watch() {
    const Interruption interruption;
    if (!options_.compare.common.quiet) {
      print("waiting for a port: parity_probe.Writer(\"{}\")\n", options_.compare.candidate);
      std::fflush(stdout);
    }
    std::vector<CandidateTensor>& tensors = sides_.candidate.tensors;
    size_t judged = 0;
    for (let_ahead(judged); port_.receive(tensors, kLookAgain); let_ahead(judged)) {
      if (interruption.asked()) {
        ending_.interrupted = true;
        port_.hang_up();
        continue;
      }
      const bool port_waits = options_.stop && tensors.size() >= ahead_of(judged);
      if (ending_.divergence || tensors.size() == judged || (!port_waits && Clock::now() < next_)) continue;
      judged = tensors.size();
      judge();
    }
    ending_.complete = port_.complete();
    ending_.head = port_.head();
    return std::move(ending_);
  }

 private:
  // What a port may have written when `judged` of it is judged.
  static size_t ahead_of(size_t judged) { return judged + std::max(kAhead, judged / 2); }

  void let_ahead(size_t judged) {
    if (options_.stop) port_.let_ahead(ahead_of(judged));
  }

  void judge() {
    const auto begin = Clock::now();
    if (any_named()) {
      named(
          {options_.compare.reference, sides_.candidate.file.string()},
          [&] {
            if (const auto row = judge_.first_divergence()) say(*row);
          },
          options_.compare.map);
    }
    const auto end = Clock::now();
    next_ = end + (end - begin);
  }

  // A map that names nothing that is there is an error, but not before everything is there.
  bool any_named() const {
    if (!sides_.map) return true;
    for (const Boundary& boundary : sides_.reference.program.boundaries)
      if (const auto target = sides_.map->find(boundary.path, boundary.call))
        for (const CandidateTensor& tensor : sides_.candidate.tensors)
          if (tensor.path == target->candidate && tensor.call == target->call) return true;
    return false;
  }

  void say(const OpResult& row) {
    ending_.divergence = row;
    const std::string diagnosis = row.diagnosis.empty() ? gate_name(row.gate) : row.diagnosis;
    if (options_.stop) {  // before it is said: who reads that may let the port go on
      port_.stop(row.path, diagnosis);
      ending_.stopped = true;
    }
    if (options_.compare.common.quiet) return;
    print("first divergence so far: {}{}: {}\n", row.path.empty() ? "(result)" : row.path,
          row.call > 0 ? fmt::format(" call {}", row.call) : "", diagnosis);
    std::fflush(stdout);
  }

  Sides& sides_;
  LivePort& port_;
  const WatchOptions& options_;
  LiveJudge judge_;
  Clock::time_point next_{};  // judging
  Ending ending_;
};

OpResult unfinished(const Ending& ending, size_t tensors) {
  const char* why = ending.stopped       ? "the port was told to stop at the first divergence"
                    : ending.interrupted ? "watching was interrupted"
                                         : "the connection ended before the port said that it was done";
  return untrusted_row("(stream)", "stream",
                       fmt::format("{}: {} tensors arrived, what comes after them was not compared", why, tensors));
}

// What the stream says about its port.
void describe_port(Side& side, const nlohmann::json& head) {
  if (!head.is_object()) return;
  const auto text = [&](const char* key) {
    return head.contains(key) && head[key].is_string() ? head[key].get<std::string>() : std::string();
  };
  side.model = text("model");
  side.producer = text("producer");
  if (head.contains("provenance") && head["provenance"].is_object()) side.details = head["provenance"];
}

int run_watch(WatchOptions options, const std::string& command_line) {
  CompareOptions& compare = options.compare;
  compare.live = true;
  Sides sides;
  sides.reference = open_side(compare.reference);
  require_program(sides);
  set_threads(compare.common, sides.reference.dump.get());
  LivePort port(options.listen);
  compare.candidate = "parity://" + port.address();
  sides.candidate.file = compare.candidate;
  const Ending ending = Watcher(sides, port, options).watch();
  const size_t arrived = sides.candidate.tensors.size();
  if (arrived == 0)
    throw Error(port.connected() ? fmt::format("{}: no tensor arrived", compare.candidate)
                                 : fmt::format("nothing connected to {}", compare.candidate));
  OpenedSide candidate = std::move(sides.candidate);
  {
    ShareBar bar("pairing", compare.common.quiet);
    take_candidate(sides, std::move(candidate), compare.map, std::ref(bar));
  }
  return report_on(sides, compare, {}, command_line, [&](Report& report) {
    describe_port(report.candidate, ending.head);
    if (!ending.complete) report.ops.push_back(unfinished(ending, arrived));
  });
}

}  // namespace

void add_watch(CLI::App& app, Action& action, const std::string& command_line) {
  auto options = std::make_shared<WatchOptions>();
  CompareOptions& compare = options->compare;
  CLI::App* command = app.add_subcommand(
      "watch", "Judge a running port that streams its tensors here: parity_probe.Writer(\"parity://HOST:PORT\")");
  command->add_option("REF", compare.reference, "PyTorch recording")->required()->check(existing_path());
  command
      ->add_option("--listen", options->listen,
                   "Where to wait for it (default 127.0.0.1:7077); port 0 takes a free one and prints it. Nobody who "
                   "can reach it is asked who he is")
      ->type_name("HOST:PORT");
  command->add_flag("--stop", options->stop,
                    "Stop the port at the first divergence; it waits where watch falls behind");
  command->add_option("--map", compare.map, "As for compare")->check(existing_file())->type_name("FILE");
  command->add_option("--layer", compare.layer, "As for compare")->type_name("GLOB");
  command->add_option("--out", compare.out, "Folder for the reports, as for compare")->type_name("DIR");
  add_common(*command, compare.common);
  command->callback([options, &action, command_line] {
    action = [options, command_line] { return run_watch(*options, command_line); };
  });
}

}  // namespace parity::cli
