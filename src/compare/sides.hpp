// The two recordings of a comparison, opened and paired.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compare/candidate.hpp"
#include "compare/port_pairing.hpp"
#include "compare/result.hpp"

namespace parity {

struct Sides {
  std::unique_ptr<Dump> reference, candidate;
  Program program, port;  // port: empty of ops when a writer recorded it
  std::vector<CandidateTensor> tensors;
  PortPairing pairing;
  std::vector<std::string> warnings;  // interrupted recordings, differing configurations
};

/// Opens, pairs (map file "" : none) and checks. `automatic`: pair what names leave over by content and order.
/// Throws Error for files that cannot be used: no program on the reference's side, no comparable tensor on the other.
Sides open_sides(const std::filesystem::path& reference, const std::filesystem::path& candidate,
                 const std::filesystem::path& map, bool automatic = true);

/// For the report's head.
Side describe_side(const Dump& dump);

}  // namespace parity
