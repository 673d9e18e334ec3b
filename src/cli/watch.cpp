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
#include "jobs/live_port.hpp"
#include "jobs/port_job.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAgain(100);  // whether the program was interrupted

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
  Watcher(Sides& sides, LivePort& port, const WatchOptions& options) : sides_(sides), port_(port), options_(options) {
    job_.layer = options.compare.layer;
    job_.diagnose = false;
    if (!options.compare.map.empty()) sides_.map = read_map(options.compare.map);
  }

  /// Until nothing more comes: takes what arrives and judges it, each time after at least as long as that took.
  Ending watch() {
    const Interruption interruption;
    std::vector<CandidateTensor>& tensors = sides_.candidate.tensors;
    for (size_t judged = 0; port_.receive(tensors, kLookAgain);) {
      if (interruption.asked()) {
        ending_.interrupted = true;
        port_.hang_up();
        continue;
      }
      if (ending_.divergence || tensors.size() == judged || Clock::now() < next_) continue;
      judged = tensors.size();
      judge();
    }
    ending_.complete = port_.complete();
    ending_.head = port_.head();
    return std::move(ending_);
  }

 private:
  void judge() {
    const auto begin = Clock::now();
    if (any_named()) {
      named(
          {options_.compare.reference, sides_.candidate.file.string()}, [&] { pair_and_judge(); },
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

  // Rows of what has arrived; what has not is missing from them, and no row says so. Pairs that were guessed may turn
  // out otherwise once more is there: they wait for the end.
  void pair_and_judge() {
    const PortPairing pairing =
        pair_recordings(*sides_.reference.dump, sides_.reference.program, sides_.candidate.tensors,
                        &sides_.candidate.program, sides_.map ? &*sides_.map : nullptr);
    if (pairing.pairs.empty()) return;
    job_.go_on = [&](const JobResult& so_far) { return so_far.rows.size() < pairing.pairs.size(); };
    Report report;
    report.ops =
        run_port_job(*sides_.reference.dump, sides_.reference.program, sides_.candidate.tensors, pairing, job_).rows;
    std::erase_if(report.ops, [&](const OpResult& row) {
      return std::none_of(pairing.pairs.begin(), pairing.pairs.end(), [&](const PortPair& pair) {
        return static_cast<int64_t>(pair.boundary) == row.index && pair.confidence >= 1;
      });
    });
    if (const OpResult* first = first_divergence(report)) say(*first);
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
  PortJobOptions job_;
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
  if (!compare.common.quiet) {
    print("waiting for a port: parity_probe.Writer(\"{}\")\n", compare.candidate);
    std::fflush(stdout);
  }
  const Ending ending = Watcher(sides, port, options).watch();
  const size_t arrived = sides.candidate.tensors.size();
  if (arrived == 0) throw Error(fmt::format("{}: no tensor arrived", compare.candidate));
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
  command->add_flag("--stop", options->stop, "Stop the port at the first divergence");
  command->add_option("--map", compare.map, "As for compare")->check(existing_file())->type_name("FILE");
  command->add_option("--layer", compare.layer, "As for compare")->type_name("GLOB");
  command->add_option("--out", compare.out, "Folder for the reports, as for compare")->type_name("DIR");
  add_common(*command, compare.common);
  command->callback([options, &action, command_line] {
    action = [options, command_line] { return run_watch(*options, command_line); };
  });
}

}  // namespace parity::cli
