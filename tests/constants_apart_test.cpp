// Constants between two tensors, and what is no constant.
#include <doctest/doctest.h>

#include "measure/constants_apart.hpp"
#include "measure_numbers.hpp"
#include "pair/folded.hpp"

namespace parity {

TEST_CASE("constants apart: a factor is measured, and what it leaves") {
  const at::Tensor reference = numbers::random({6, 40}, 1, at::kFloat);
  const FactorFit fit = fit_factor(reference, reference * .25f);
  CHECK(fit.factor == doctest::Approx(4));
  CHECK(fit.left < 1e-7);
  const at::Tensor noise = numbers::random({6, 40}, 2, at::kFloat);
  const double left = fit_factor(reference, reference + .1f * noise).left;
  CHECK(left == doctest::Approx(.1 * (noise.norm() / reference.norm()).item<double>()).epsilon(.05));
  CHECK(fit_factor(reference, at::zeros_like(reference)).left == 1);
  CHECK(fit_factor(reference, noise).left > .9);
}

TEST_CASE("constants apart: two numbers a channel, along the axis that has them") {
  const at::Tensor base = numbers::random({4, 16, 12}, 1, at::kDouble),
                   factors = numbers::random({16, 1}, 2, at::kDouble),
                   offsets = numbers::random({16, 1}, 3, at::kDouble);
  const at::Tensor scaled = base * (2 + factors) + offsets;
  CHECK(left_by_channels(scaled, base, 1) < 1e-12);
  CHECK(left_by_channels(scaled, base, 2) > .1);
  CHECK(left_by_channels(numbers::random({4, 16, 12}, 4, at::kDouble), base, 1) > .9);
  CHECK(left_by_channels(at::ones({4, 16, 12}), base, 1) == 1);  // nothing deviates, nothing is explained
}

TEST_CASE("folded: says which constants, and nothing of other values") {
  const at::Tensor plain = numbers::random({2, 23, 48}, 1, at::kFloat),
                   gain = 1 + .3 * numbers::random({48}, 2, at::kFloat), bias = numbers::random({48}, 3, at::kFloat);
  CHECK(folded_in_weights(plain, plain / 4) == "the reference's divided by 4");
  CHECK(folded_in_weights(plain * gain + bias, plain) == "the reference's without a factor and an offset a channel");
  CHECK(folded_in_weights((plain * gain + bias).movedim(2, 1), plain.movedim(2, 1)) ==
        "the reference's without a factor and an offset a channel");
  CHECK(folded_in_weights((plain * gain + bias).to(at::kBFloat16), plain.to(at::kBFloat16)) ==
        "the reference's without a factor and an offset a channel");
  CHECK(folded_in_weights(plain, plain.flip({0, 1})).empty());
  CHECK(folded_in_weights(plain, plain + .05 * numbers::random({2, 23, 48}, 4, at::kFloat)).empty());
  const at::Tensor few =
      numbers::random({3, 48}, 5, at::kFloat);  // two constants fit three numbers a channel nearly always
  CHECK(folded_in_weights(few * gain + bias, few).empty());
}

}  // namespace parity
