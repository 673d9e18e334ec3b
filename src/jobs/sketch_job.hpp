// `compare` where a side is a recording of level sketch: boundaries as they are, estimated.
#pragma once
#include "jobs/job_result.hpp"
#include "jobs/sides.hpp"

namespace parity {

/// Pairs by map, then by path, and compares sketches; a full recording's values are sketched on the fly, tensors that
/// both sides hold whole are measured as run_plain_job does. The models' inputs and weights are compared where both
/// sides name them alike (rows `inputs/<call>/<name>`, `weights/<name>`). Throws Error for a damaged sketch and for a
/// map rule that matches nothing.
JobResult run_sketch_job(const Sides& sides, const std::string& layer, const GoOn& go_on = nullptr);

}  // namespace parity
