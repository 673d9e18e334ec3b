// When a change is the name of a difference, and when a cast is by its size.
#include <doctest/doctest.h>

#include "judge/naming.hpp"

namespace parity {

TEST_CASE("judge: a change that explains half of an fp32 difference is its name behind several modules alone") {
  Finding half{{"residual missing", "second term left out", "blocks.0/add.0"}};
  half.fit.explained = .5, half.fit.correlation = .71, half.fit.elements = 400, half.fit.amplitude = 1;
  half.fit.z = half.fit.z_rows = 12;
  half.rest = .4;
  Finding most = half;
  most.fit.explained = .65;
  Segment one, several;
  one.products = 1, several.products = 9;
  const Thresholds limits;
  CHECK_FALSE(explains_enough(half, one, false, limits));
  CHECK(explains_enough(most, one, false, limits));
  CHECK(explains_enough(half, several, false, limits));
  CHECK(explains_enough(half, one, true, limits));  // half width: roundings may be the rest
  half.noise = .1;
  CHECK(explains_enough(half, one, false, limits));
}

TEST_CASE("judge: no cast is named by its size alone for an error of more than a few roundings") {
  Finding cast{{"extra rounding", "result bf16", "blocks.0/add.0"}, Gate::dtype_path};
  cast.fit.size = .01;
  const Thresholds limits;
  CHECK(cast_of_this_size({cast}, .012, limits) != nullptr);
  CHECK(cast_of_this_size({cast}, .02, limits) == nullptr);  // within the factor of its size, too
}

}  // namespace parity
