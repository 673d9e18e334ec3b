// Is a recording whole? For `parity-check inspect --verify`.
#pragma once
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "dump/dump.hpp"

namespace parity {

/// Problems, one line each, empty when there are none: the recording is incomplete; a key, weight or input that the
/// events refer to is absent, unreadable, or of another dtype or shape; a link leads nowhere; a program's events do not
/// fit together is load_program's to say. `information` (optional) receives what is worth knowing and no fault:
/// non-finite elements, values nothing refers to. Reads every tensor once.
std::vector<std::string> verify(const Dump& dump, std::vector<std::string>* information = nullptr,
                                const ShareDone& progress = nullptr);

}  // namespace parity
