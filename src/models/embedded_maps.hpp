// The name maps that travel inside the library: probes/maps/*.map, embedded at build time.
#pragma once
#include <string_view>

namespace parity {

/// Text of probes/maps/<name>.map. Throws Error when there is none.
std::string_view embedded_map(std::string_view name);

}  // namespace parity
