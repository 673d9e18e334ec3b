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
      {"wan", is_wan_transformer, [](const Dump& d, Precision p, Kernels k) { return port_wan(d, p, wan_ops(k)); }},
      {"gpt2", is_gpt2, [](const Dump& d, Precision p, Kernels k) { return port_gpt2(d, p, gpt2_ops(k)); }},
      {"wan-vae", is_wan_vae, [](const Dump& d, Precision p, Kernels k) { return port_wan_vae(d, p, wan_vae_ops(k)); }},
      {"gpt-oss", is_gpt_oss, [](const Dump& d, Precision p, Kernels k) { return port_gpt_oss(d, p, gpt_oss_ops(k)); }},
      {"umt5", is_umt5, [](const Dump& d, Precision p, Kernels k) { return port_umt5(d, p, umt5_ops(k)); }},
      {"clip", is_clip_vision,
       [](const Dump& d, Precision p, Kernels k) { return port_clip_vision(d, p, clip_ops(k)); }},
  };
  return table;
}

}  // namespace parity
