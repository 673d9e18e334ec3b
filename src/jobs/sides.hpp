// The two recordings of a comparison, opened and paired.
#pragma once
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "core/result.hpp"
#include "pair/candidate.hpp"
#include "pair/port_pairing.hpp"
#include "ranks/join_shards.hpp"
#include "trace/extract.hpp"

namespace parity {

/// One side: a recording, or a set of tensors (.safetensors, .npz, .npy, .pt, a folder), or several of either that the
/// ranks of a parallel run wrote (jobs/shard_files.hpp).
struct OpenedSide {
  std::filesystem::path file;
  std::unique_ptr<Dump> dump;  // one of the two
  std::unique_ptr<TensorSet> set;
  Program program;  // without ops when a writer recorded it, empty for a set
  std::vector<CandidateTensor> tensors;
  std::vector<std::string> notes;    // what a person should know of it
  std::vector<RankRecording> ranks;  // by number; empty: no parallel run. `dump`, `set` and `program` are the first's
  std::vector<std::shared_ptr<OpenedSide>> other_ranks;  // what their tensors are read from
  /// A recording of level sketch: most tensors are there as sketches alone (jobs/sketch_side.hpp).
  bool sketched() const { return dump != nullptr && dump->level() == "sketch"; }
};

struct Sides {
  OpenedSide reference, candidate;
  std::optional<NameMap> map;
  PortPairing pairing;  // of a reference with a program
  bool rewritten =
      false;  // the reference's program was changed for this candidate (calls/last_tokens.hpp, padding.hpp)
  std::vector<std::string> warnings;  // interrupted recordings, differing configurations, guessed pairs
  bool sketched() const { return reference.sketched() || candidate.sketched(); }  // compared without replay
  bool replayable() const { return !reference.program.ops.empty() && !sketched(); }
};

/// One side alone; a map file. Throw Error for files that cannot be used.
OpenedSide open_side(const std::filesystem::path& file);
NameMap read_map(const std::filesystem::path& file);

/// Opens, pairs (map file "": none; by what names leave over: content and order) and checks.
/// Throws Error for files that cannot be used and for sides without a comparable tensor. A reference that is an ONNX
/// model is run on the tensors in `inputs` ("": on what the candidate recorded as its inputs; jobs/onnx_side.hpp).
Sides open_sides(const std::filesystem::path& reference, const std::filesystem::path& candidate,
                 const std::filesystem::path& map, const ShareDone& pairing = nullptr,
                 const std::filesystem::path& inputs = "");

/// Another candidate beside the reference that `sides` has open already. Throws as `open_sides`.
void open_candidate(Sides& sides, const std::filesystem::path& candidate, const std::filesystem::path& map,
                    const ShareDone& pairing = nullptr);

/// The same for a candidate that is open already, or came from elsewhere than a file.
void take_candidate(Sides& sides, OpenedSide candidate, const std::filesystem::path& map,
                    const ShareDone& pairing = nullptr);

/// What two recordings of one model class are configured differently in ("layer_norm_eps 1e-05 and 1e-06"), apart from
/// names, versions and dtypes; "" when they agree, or are of two classes, or one holds no configuration.
std::string configuration_conflict(const Sides& sides);

/// The port's values at the reference's boundaries, as compare would pair them; `sides` must outlive them. They throw
/// Error where shapes differ.
PortValues port_values(const Sides& sides);

/// Throws Error telling what to do when the reference holds no program.
void require_program(const Sides& sides);

/// Whose code a recording ran: "diffusers' code", "our transcription of the original" (scripts/reference_models),
/// "code of the Python module x.y"; "" when the recording does not say.
std::string code_of(const Dump& dump);

/// For the report's head; `details` is the provenance and `code`, what code_of says. That of an opened side lacks its
/// file's digest.
Side describe_side(const OpenedSide& side);
Side describe_side(const Dump& dump);

/// SHA-256 of the side's file ("": a folder; several ranks: of their files' digests), on a thread of its own: it takes
/// half as long as comparing. `get` throws Error for a file that cannot be read to its end.
std::shared_future<std::string> digest_beside(const OpenedSide& side);

}  // namespace parity
