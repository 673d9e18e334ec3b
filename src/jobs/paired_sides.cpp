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

// Boundaries of the reference that are of tokens alone, without padding.
struct WithoutPadding {
  PartBoundaries samples, tokens;

  bool empty() const { return samples.empty() && tokens.empty(); }
  void keep(const std::vector<bool>& marked) {
    const auto is_unpaired = [&](const auto& boundary) { return !marked[boundary.first]; };
    std::erase_if(samples, is_unpaired);
    std::erase_if(tokens, is_unpaired);
  }
};

// The port's tensors in the calls and the shapes that the reference has.
WithoutPadding match_shapes(Sides& sides, const NameMap* map, std::vector<std::string>& notes) {
  OpenedSide& reference = sides.reference;
  std::vector<CandidateTensor>& tensors = sides.candidate.tensors;
  const RecordedSide port{&sides.candidate.program, sides.candidate.dump.get()};
  auto paths = call_shapes(reference.program, tensors, map);
  auto samples = match_samples(reference.program, *reference.dump, port, tensors, paths, notes);
  if (!samples) samples = match_packed(reference.program, *reference.dump, port, tensors, paths, notes);
  if (!samples) tensors = match_calls(reference.program, *reference.dump, std::move(tensors), std::move(paths), notes);
  order_calls(reference.program, *reference.dump, tensors, map, notes);
  if (sides.candidate.ranks.empty())  // of a parallel run the mesh says which rank has which samples
    order_samples({&reference.program, reference.dump.get()}, port, tensors, map, notes);
  PartBoundaries tokens = leave_out_padding(reference.program, *reference.dump, port, tensors, map, notes);
  if (!samples && tokens.empty())
    samples = leave_out_zeroed_rows(reference.program, *reference.dump, tensors, map, notes);
  broadcast(reference.program, *reference.dump, tensors, map);
  return {std::move(samples).value_or(PartBoundaries()), std::move(tokens)};
}

}  // namespace

void pair_sides(Sides& sides, const ShareDone& progress) {
  const NameMap* map = sides.map ? &*sides.map : nullptr;
  std::vector<std::string> notes;
  OpenedSide& reference = sides.reference;
  std::vector<CandidateTensor>& tensors = sides.candidate.tensors;
  if (std::exchange(sides.rewritten, false)) reference.program = load_program(*reference.dump);
  WithoutPadding unpadded = match_shapes(sides, map, notes);
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
  if (last || !unpadded.empty()) {  // what has no pair stays as it was recorded
    sides.rewritten = true;
    reference.program = load_program(*reference.dump);
    unpadded.keep(sides.pairing.marked);
    go_on_from_parts(reference.program, unpadded.samples);
    go_on_from_parts(reference.program, unpadded.tokens);
    if (last) go_on_from_last_rows(reference.program, *last, &sides.pairing.marked);
  }
  sides.warnings = std::move(notes);
  sides.warnings.insert(sides.warnings.end(), sides.pairing.notes.begin(), sides.pairing.notes.end());
  warn_of_guesses(sides);
}

}  // namespace parity
