// Cast placements in words, and which one reproduces a port best.
#pragma once
#include <string>

#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "pair/segments.hpp"
#include "trace/program.hpp"

namespace parity {

/// "LayerNorm in fp32, cast to bf16, mul and add in fp32": the computing ops of a segment with their dtypes. "" when
/// nothing is computed.
std::string cast_path_of(const Program& program, const Segment& segment);

/// How well `tried` (another placement's value, any float dtype) reproduces `candidate`: shapes must agree.
CastPlacement placement(std::string name, const at::Tensor& tried, const at::Tensor& candidate, at::ScalarType dtype);

/// Sorts the placements, best first ("as recorded" wins ties), and writes the sentence.
void conclude(DtypePath& path, const std::string& reference);

}  // namespace parity
