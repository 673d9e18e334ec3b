// Which tensor of a port is which boundary of the reference: by map file, by path, else by order, shape and content.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "core/result.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"

namespace parity {

struct PortPair {
  size_t boundary = 0, candidate = 0;  // indices into Program::boundaries and the candidate's tensors
  Layout layout;                       // candidate -> reference
  double confidence = 1;
  std::string evidence;  // "path", "map line 3", "content 0.999, order"
  double distance = 1;   // of content, where that was looked at
  bool moved = false;    // it has another value's name (pair/moved.hpp)
  bool misfit = false;   // it has another shape, which no name and no layout explains (pair/other_shape.hpp)
  bool goes_on = true;   // the program is replayed on from the candidate's value; false: the port did not go on from it
  bool laid_out = false;    // a map's rule says how its axes lie
  std::string folded = {};  // what the value is, where only the port's weights make it another (pair/folded.hpp)
};

struct PortPairing {
  std::vector<PortPair> pairs;     // by boundary, ascending
  std::vector<bool> marked;        // by boundary
  std::vector<size_t> unmatched;   // candidate tensors
  std::vector<std::string> notes;  // for people, from the automatic pairing

  /// Its tensor is no longer unmatched.
  void add(PortPair pair);
  /// Takes back the pairs that `unwanted` names, returned as they were: their tensors are unmatched.
  std::vector<PortPair> drop_if(const std::function<bool(const PortPair& pair)>& unwanted);
};

/// By map, then by path. An op's result is paired by path only where both sides ran the same ops in that module call:
/// `blocks.0/add.1` of another program may be another addition. Shapes need not agree (the row then says so).
/// `map` may be null. Throws Error for a map rule that matches nothing on either side, and for two rules that give one
/// boundary's tensor to several candidates.
PortPairing pair_by_name(const Program& reference, const std::vector<CandidateTensor>& candidate,
                         const Program* candidate_program, const NameMap* map);

/// As above, then automatically what is left (pair/by_content.hpp).
PortPairing pair_recordings(const Dump& dump, const Program& reference, const std::vector<CandidateTensor>& candidate,
                            const Program* candidate_program, const NameMap* map, const ShareDone& progress = nullptr);

}  // namespace parity
