// Which kind of op stands behind a point of the model.
#pragma once
#include <string_view>

namespace parity {

/// In the field's words (PortedModel::kind); "" for a path that is none of the model's.
std::string_view wan_kind(std::string_view path);

}  // namespace parity
