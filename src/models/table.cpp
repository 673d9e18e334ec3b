// The models: a new one is one folder and one line here.
#include "models/model.hpp"
#include "models/wan/ported.hpp"

namespace parity {

const std::vector<ModelEntry>& model_table() {
  static const std::vector<ModelEntry> table = {
      {"wan", is_wan_transformer, port_wan},
  };
  return table;
}

}  // namespace parity
