// One op or one module call of a recording as a recording of its own: what enters, the ops, what left. The result is a
// parity-dump/1 that every reader of recordings takes; value ids, paths and call numbers stay those of the source.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "trace/program.hpp"

namespace parity {

/// The port's value at a boundary of the reference, in the reference's layout; nullopt where it has none.
using PortValues = std::function<std::optional<at::Tensor>(size_t boundary)>;

struct ExtractOptions {
  std::string path;         // "blocks.0.norm1", "blocks.0/add.1"
  std::optional<int> call;  // which of several calls
  PortValues port;  // with it: the port's inputs (the program run on its values up to here) and outputs are kept too
  ShareDone progress{};
};

struct Extracted {
  std::string path;
  int call = 0;
  size_t ops = 0, leaves = 0;
  std::vector<std::string> outputs;   // paths
  size_t port_outputs = 0;            // how many of them the port has
  std::vector<std::string> captured;  // names of what enters without being an argument or a weight
};

/// Writes the extract to `file`. Values that enter are the recorded ones; those that a recording does not hold are
/// recomputed in the recorded dtypes. Throws Error (one line) for a path that names nothing or several things, and as
/// `replay`.
Extracted extract(const Dump& dump, const Program& program, const ExtractOptions& options,
                  const std::filesystem::path& file);

/// What the port had around an extract; empty when none was given.
struct PortState {
  std::map<int64_t, at::Tensor> inputs;       // by value id, where they differ from the reference's
  std::map<std::string, at::Tensor> outputs;  // by path
};
PortState port_state(const Dump& extract);

/// Paths of the results that `extract` was made for; of any other recording the outputs of its root module.
std::vector<std::pair<std::string, int>> result_paths(const Dump& extract, const Program& program);

}  // namespace parity
