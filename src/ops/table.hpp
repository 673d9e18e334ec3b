// The op table: a new op is one file and one line here; the sweep in tests/ops_table_test.cpp then tests it.
#pragma once
#include <vector>

#include "ops/op.hpp"

namespace parity {

const std::vector<const OpRow*>& op_table();

}  // namespace parity
