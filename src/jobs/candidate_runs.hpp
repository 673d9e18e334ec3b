// Running the re-implemented model: recorded, teacher-forced, free.
#pragma once
#include <map>

#include "pair/model_pairing.hpp"

namespace parity {

using Values = std::map<size_t, at::Tensor>;  // by boundary, in the reference's layout

/// Every point of a free run, for pairing. All forward calls of the recording.
RecordedPoints record_points(PortedModel& model, const Program& program);

/// The candidate's values, each computed from the reference's: the model goes on from `reference` in its own dtype and
/// memory layout. With `noise` the reference's values are handed back perturbed, each element by that relative amount
/// times a standard normal number; each `draw` has numbers of its own.
Values run_forced(PortedModel& model, const Program& program, const Pairing& pairing, const Values& reference,
                  double noise = 0, uint64_t draw = 0);

/// The candidate's values when it feeds itself.
Values run_free(PortedModel& model, const Program& program, const Pairing& pairing);

}  // namespace parity
