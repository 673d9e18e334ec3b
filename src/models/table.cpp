// The models: a new one is one folder and one line here.
#include "models/clip/ported.hpp"
#include "models/gpt2/ported.hpp"
#include "models/gpt_oss/ported.hpp"
#include "models/model.hpp"
#include "models/umt5/ported.hpp"
#include "models/wan/ported.hpp"
#include "models/wan_vae/ported.hpp"

namespace parity {

const std::vector<ModelEntry>& model_table() {
  static const std::vector<ModelEntry> table = {
      {"wan", is_wan_transformer, [](const Dump& d, Precision p, Kernels) { return port_wan(d, p); }, false},
      {"gpt2", is_gpt2, [](const Dump& d, Precision p, Kernels k) { return port_gpt2(d, p, gpt2_ops(k)); }, true},
      {"wan-vae", is_wan_vae, [](const Dump& d, Precision p, Kernels) { return port_wan_vae(d, p, {}); }, false},
      {"gpt-oss", is_gpt_oss, [](const Dump& d, Precision p, Kernels k) { return port_gpt_oss(d, p, gpt_oss_ops(k)); },
       true},
      {"umt5", is_umt5, [](const Dump& d, Precision p, Kernels k) { return port_umt5(d, p, umt5_ops(k)); }, true},
      {"clip", is_clip_vision,
       [](const Dump& d, Precision p, Kernels k) { return port_clip_vision(d, p, clip_ops(k)); }, true},
  };
  return table;
}

}  // namespace parity
