// Whole numbers that one side keeps as floats. Touches no tensor.
#pragma once
#include "core/result.hpp"
#include "measure/evidence.hpp"

namespace parity {

/// Passes a row whose sides hold the same whole numbers in other classes of dtype, and says so; false: it is another
/// row. transformers counts tokens for experts in fp32 on a CPU, whose histogram takes nothing else, and in int32 on a
/// GPU.
bool pass_same_numbers(OpResult& row, const Evidence& evidence);

}  // namespace parity
