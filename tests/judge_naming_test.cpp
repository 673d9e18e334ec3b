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
  CHECK_FALSE(explains_enough(half, one, limits));
  CHECK(explains_enough(most, one, limits));
  CHECK(explains_enough(half, several, limits));
  half.noise = .1;  // roundings may be the rest
  CHECK(explains_enough(half, one, limits));
}

TEST_CASE("judge: a change of free size must explain most, fitted to the roundings or not") {
  Finding gain{{"gain", "the product before its bias scaled, factor 0.18", "conv/convolution.0"}};
  gain.fit.explained = .5, gain.fit.correlation = .71;
  gain.free_size = .8;
  const Thresholds limits;
  CHECK_FALSE(explains_enough(gain, Segment{}, limits));
  gain.fixed_amplitude = false;
  CHECK_FALSE(explains_enough(gain, Segment{}, limits));
  gain.fit.correlation = .95;
  CHECK(explains_enough(gain, Segment{}, limits));
}

TEST_CASE("judge: a scaling is told by its factor") {
  Finding scaled{{"gain", "all values scaled"}};
  scaled.fit.amplitude = -.1;
  CHECK(size_text(scaled) == "amplitude -0.10");
  scaled.step = 1;
  CHECK(size_text(scaled) == "factor 0.9");
  scaled.fit.amplitude = 40, scaled.step = .01;
  CHECK(size_text(scaled) == "factor 1.4");
}

TEST_CASE("judge: no cast is named by its size alone for an error of more than a few roundings") {
  Finding cast{{"extra rounding", "result bf16", "blocks.0/add.0"}, Gate::dtype_path};
  cast.fit.size = .01;
  const Thresholds limits;
  CHECK(cast_of_this_size({cast}, .012, limits) != nullptr);
  CHECK(cast_of_this_size({cast}, .02, limits) == nullptr);  // within the factor of its size, too
}

}  // namespace parity
