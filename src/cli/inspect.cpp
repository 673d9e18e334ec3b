// parity-check inspect: what is in a recording.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/command.hpp"
#include "cli/inspect_sketches.hpp"
#include "cli/inspect_tensors.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/named.hpp"
#include "core/precision.hpp"
#include "dump/dump.hpp"
#include "dump/shard.hpp"
#include "dump/verify.hpp"
#include "pair/name_map.hpp"
#include "report/sink.hpp"
#include "trace/program.hpp"

namespace parity::cli {
namespace {

struct InspectOptions {
  Common common;
  std::string file, layer = "all";
  bool ops = false, verify = false;
};

std::string value_text(const Value& value) { return type_text(value.dtype, value.shape); }

int64_t stored_bytes(const Value& value) {
  if (value.key.empty()) return 0;
  int64_t bytes = static_cast<int64_t>(c10::elementSize(value.dtype));
  for (const int64_t size : value.shape) bytes *= size;
  return bytes;
}

nlohmann::json boundary_json(const Program& program, const Boundary& b) {
  return {{"path", b.path},
          {"call", b.call},
          {"kind", b.kind},
          {"dtype", dtype_name(b.value.dtype)},
          {"shape", b.value.shape},
          {"stored", !b.value.key.empty()},
          {"source", program.source(b.line)},
          {"library_source", program.source(b.library_line)}};
}

nlohmann::json summary_json(const Dump& dump, const Program& program) {
  return {{"file", dump.file().string()},    {"model", dump.model()},
          {"producer", dump.producer()},     {"level", dump.level()},
          {"complete", dump.complete()},     {"provenance", dump.provenance()},
          {"ops", program.ops.size()},       {"module_calls", program.calls.size()},
          {"leaves", program.leaves.size()}, {"boundaries", nlohmann::json::array()}};
}

void print_header(const Dump& dump, const Program& program) {
  const auto& p = dump.provenance();
  int64_t bytes = 0;
  for (const Leaf& leaf : program.leaves) bytes += stored_bytes(leaf.value);
  print("{}\n  {} recorded by {}, level {}{}\n", dump.file().string(),
        dump.model().empty() ? "unnamed model" : dump.model(), dump.producer(), dump.level(),
        dump.complete() ? "" : ", INTERRUPTED");
  print("  torch {}, {} ({}), {} threads, seed {}\n", p.value("torch", "?"), p.value("cpu", "?"),
        p.value("cpu_capability", "?"), p.value("threads", 0), p.contains("seed") ? p["seed"].dump() : "?");
  print("  {} ops in {} module calls, {} boundaries, {} leaves ({}), {} weights\n\n", program.ops.size(),
        program.calls.size(), program.boundaries.size(), program.leaves.size(), human_bytes(static_cast<double>(bytes)),
        dump.weight_names().size());
}

void print_shard(const Dump& dump) {
  const std::optional<Shard> shard = shard_of(dump);
  if (!shard) return;
  print("  rank {} of the mesh {}; {} tensors say how they are placed\n", shard->mesh.name(shard->mesh.rank(shard->at)),
        shard->mesh.text(), shard->values.size());
  for (const auto& [glob, placements] : shard->specs) print("  {}: {}\n", glob, text_of(shard->mesh, placements));
}

void print_tree(const Program& program, const InspectOptions& options) {
  for (const ModuleCall& call : program.calls) {
    if (!matches_layer(call.path, options.layer)) continue;
    int depth = 0;
    for (int parent = call.parent; parent >= 0; parent = program.calls[parent].parent) ++depth;
    const std::string name = call.path.empty() ? "(root)" : call.path;
    const std::string result = call.outputs.empty() ? "-" : value_text(call.outputs.front());
    print("{:{}}{:{}} {:28} {:>5} ops  {}\n", "", 2 * depth,
          call.call == 0 ? name : fmt::format("{} (call {})", name, call.call), std::max(1, 44 - 2 * depth), call.type,
          call.end - call.begin, result);
  }
}

// "  modeling_llama.py:243 in forward, linear.py:134 in forward"; "" when no line was recorded.
std::string lines_of(const Program& program, const Boundary& b) {
  const std::string source = program.source(b.line), library = program.source(b.library_line);
  return (source.empty() && library.empty() ? "" : "  ") + source + (source.empty() || library.empty() ? "" : ", ") +
         library;
}

void print_ops(const Program& program, const InspectOptions& options) {
  for (const Boundary& b : program.boundaries)
    if (matches_layer(b.path, options.layer))
      print("{:56} {:32} {} {}{}\n", b.call == 0 ? b.path : fmt::format("{} (call {})", b.path, b.call), b.kind,
            value_text(b.value), b.value.key.empty() ? "" : "stored", lines_of(program, b));
}

// 0 when the recording is whole, else 1; each problem is one line on standard error.
int report_problems(const Dump& dump, const InspectOptions& options, nlohmann::json& json) {
  std::vector<std::string> information;
  const std::vector<std::string> problems = [&] {
    ShareBar bar("verifying", options.common.quiet);
    return verify(dump, &information, std::ref(bar));
  }();
  for (const std::string& problem : problems) print_error("{}: {}\n", options.file, problem);
  if (!options.common.quiet) {
    for (const std::string& line : information) print("note: {}\n", line);
    if (problems.empty()) print("verified: every tensor that the program refers to is there and fits\n");
  }
  json["problems"] = problems;
  json["information"] = information;
  return problems.empty() ? 0 : 1;
}

int inspect_recording(const InspectOptions& options, nlohmann::json& json) {
  const Dump dump(options.file);
  const Program program = load_program(dump);
  json = summary_json(dump, program);
  for (const Boundary& b : program.boundaries)
    if (matches_layer(b.path, options.layer)) json["boundaries"].push_back(boundary_json(program, b));
  const bool sketched = dump.level() == "sketch";
  const std::string sketches = sketched ? describe_sketches(dump, options.layer, json) : "";
  if (!sketched && options.layer != "all" && json["boundaries"].empty())
    throw Error(fmt::format("{}: --layer '{}' matches nothing", options.file, options.layer));
  if (!options.common.quiet) {
    print_header(dump, program);
    print_shard(dump);
    if (sketched)
      print("{}", Assembled{sketches});
    else
      options.ops ? print_ops(program, options) : print_tree(program, options);
  }
  return options.verify ? report_problems(dump, options, json) : 0;
}

int inspect(const InspectOptions& options) {
  if (TensorSet::fits(options.file)) {
    if (options.ops) throw Error(fmt::format("{}: holds tensors, no program whose ops could be listed", options.file));
    return inspect_tensors(options.common, options.file, options.layer, options.verify);
  }
  nlohmann::json json;
  const int status = named({options.file}, [&] { return inspect_recording(options, json); });
  if (!options.common.json.empty()) write_result(options.common.json, json);
  return status;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      app.add_subcommand("inspect", "What is in a recording (module tree, ops, sizes) or a file of tensors");
  command
      ->add_option(
          "dump", options->file,
          "The recording, or tensors in .safetensors, .npz, .npy, .pt, a folder of them, or another tool's dump")
      ->required()
      ->check(existing_path());
  command->add_option("--layer", options->layer, "Only these paths (globs, comma-separated)")->type_name("GLOB");
  command->add_flag("--ops", options->ops, "List every op instead of the modules");
  command->add_flag("--verify", options->verify, "Check that everything the program refers to is there and fits");
  add_common(*command, options->common);
  command->callback([options, &action] { action = [options] { return inspect(*options); }; });
}

}  // namespace parity::cli
