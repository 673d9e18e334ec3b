// The Wan transformer made for one recording: configuration, cast placement, weights and inputs read from it.
#pragma once
#include <memory>

#include "models/model.hpp"
#include "models/wan/model.hpp"

namespace parity {

/// Is the recording one of a Wan-family transformer: by class name, or by the names of its weights?
bool is_wan_transformer(const Dump& dump);

/// The cast placement a recording was made on: by class for diffusers, by the configuration's `dtype_path` or else the
/// autocast state and the weights' dtype for the originals.
const WanDtypePath& wan_dtype_path_of(const Dump& dump);

/// The linear layers' dtype as recorded: configuration key `low`, else the autocast dtype, else the weights'.
at::ScalarType wan_low_dtype(const Dump& dump);

/// `ops` lets a test put a fault in. The dump must outlive the model.
std::unique_ptr<PortedModel> port_wan(const Dump& dump, Precision precision, WanOps ops);

/// As above, without faults: the row of the model table.
std::unique_ptr<PortedModel> port_wan(const Dump& dump, Precision precision);

}  // namespace parity
