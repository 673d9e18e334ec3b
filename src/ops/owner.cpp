#include "ops/owner.hpp"

namespace parity::ops {

bool sole_owner(const at::Tensor& x) {
  return x.use_count() == 1 && x.storage().use_count() == 1 && x.storage().resizable();
}

}  // namespace parity::ops
