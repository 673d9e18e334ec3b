// On what kind of machine a report's numbers were computed. Other kernels round otherwise, so baselines are kept apart
// by it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// What kernels are chosen by, by name, of this process ("cpu", "threads", …) and of the candidate's recording
/// ("candidate.device", "candidate.jax", …), as far as the report says it. The CPU's model is not part of it: runners
/// of one kind have several, and makers and instruction sets choose the kernels.
using MachineClass = std::map<std::string, std::string>;

MachineClass machine_class(const Report& report);

/// "AMD, AVX512, 2 threads, LibTorch 2.13.0, candidate jax 0.10.2": the fields in few words.
std::string text_of_class(const MachineClass& machine);

/// "threads: 2 there, 4 here" for each field that differs.
std::vector<std::string> class_differences(const MachineClass& there, const MachineClass& here);

}  // namespace parity
