// One side of a comparison, as far as it was recorded.
#pragma once
#include "dump/dump.hpp"
#include "trace/program.hpp"

namespace parity {

struct RecordedSide {
  const Program* program = nullptr;
  const Dump* dump = nullptr;  // null: tensors alone
};

}  // namespace parity
