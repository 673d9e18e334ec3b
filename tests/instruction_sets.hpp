// Kernels under every instruction set.
#pragma once
#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <string>

namespace parity {

/// All that this processor has and the kernels are compiled for.
template <class Work>
void on_every_instruction_set(Work work) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    CAPTURE(std::string(hwy::TargetName(target)));
    work();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace parity
