#include "jobs/paired_sides.hpp"

#include <fmt/format.h>

#include <utility>

#include "calls/broadcast.hpp"
#include "calls/call_order.hpp"
#include "calls/chunks.hpp"
#include "calls/last_tokens.hpp"
#include "calls/packed_batch.hpp"
#include "calls/padding.hpp"
#include "calls/ragged_values.hpp"
#include "calls/rows_of_calls.hpp"
#include "calls/sample_order.hpp"
#include "calls/zeroed_rows.hpp"

namespace parity {
namespace {

void warn_of_guesses(Sides& sides) {
  size_t guessed = 0;
  for (const PortPair& pair : sides.pairing.pairs) guessed += pair.confidence < 1 && !pair.moved;
  if (guessed > 0)
    sides.warnings.push_back(
        fmt::format("{} of {} tensors paired without a name in common, by content, order and shape; "
                    "candidate_path says which",
                    guessed, sides.pairing.pairs.size()));
}

// The port's tensors in the calls and the shapes that the reference has. Returns the reference's boundaries that are of
// parts alone (samples, tokens without padding), in the order in which they became so.
std::vector<PartBoundaries> match_shapes(Sides& sides, const NameMap* map, std::vector<std::string>& notes) {
  Program& program = sides.reference.program;
  const Dump& dump = *sides.reference.dump;
  std::vector<CandidateTensor>& tensors = sides.candidate.tensors;
  const RecordedSide port{&sides.candidate.program, sides.candidate.dump.get()};
  std::vector<PartBoundaries> parts;
  const auto add = [&](std::optional<PartBoundaries> found) {
    if (found && !found->empty()) parts.push_back(std::move(*found));
    return found.has_value();
  };
  auto paths = call_shapes(program, tensors, map);
  if (!add(match_samples(program, dump, port, tensors, paths, notes)) &&
      !add(match_packed(program, dump, port, tensors, paths, notes))) {
    tensors = match_calls(program, dump, std::move(tensors), std::move(paths), notes);
    add(join_rows_of_calls(program, dump, tensors, map, notes));
  }
  order_calls(program, dump, tensors, map, notes);
  if (sides.candidate.ranks.empty())  // of a parallel run the mesh says which rank has which samples
    order_samples({&program, &dump}, port, tensors, map, notes);
  add(leave_out_padding(program, dump, port, tensors, map, notes));
  add(leave_out_zeroed_rows(program, dump, tensors, map, notes));
  broadcast(program, dump, tensors, map);
  return parts;
}

}  // namespace

void pair_sides(Sides& sides, const ShareDone& progress) {
  const NameMap* map = sides.map ? &*sides.map : nullptr;
  std::vector<std::string> notes;
  OpenedSide& reference = sides.reference;
  std::vector<CandidateTensor>& tensors = sides.candidate.tensors;
  if (std::exchange(sides.rewritten, false)) reference.program = load_program(*reference.dump);
  std::vector<PartBoundaries> parts = match_shapes(sides, map, notes);
  const auto pairs_by_name = pair_by_name(reference.program, tensors, &sides.candidate.program, map).pairs;
  auto last = last_tokens_by_name(reference.program, tensors, pairs_by_name, notes);
  const auto pair_all = [&] {
    if (last) go_on_from_last_rows(reference.program, *last);
    sides.pairing =
        pair_recordings(*reference.dump, reference.program, tensors, &sides.candidate.program, map, progress);
  };
  pair_all();
  if (!last) {
    last = last_tokens_by_content(reference.program, *reference.dump, tensors, sides.pairing, notes);
    if (last) pair_all();
  }
  if (last || !parts.empty()) {  // what has no pair stays as it was recorded
    sides.rewritten = true;
    reference.program = load_program(*reference.dump);
    for (PartBoundaries& boundaries : parts) {
      std::erase_if(boundaries, [&](const auto& boundary) { return !sides.pairing.marked[boundary.first]; });
      go_on_from_parts(reference.program, boundaries);
    }
    if (last) go_on_from_last_rows(reference.program, *last, &sides.pairing.marked);
  }
  sides.warnings = std::move(notes);
  sides.warnings.insert(sides.warnings.end(), sides.pairing.notes.begin(), sides.pairing.notes.end());
  warn_of_guesses(sides);
}

}  // namespace parity
