// What names of faults of convolutions are found: taps in reverse order, padding on another side or of other values.
#include <doctest/doctest.h>

#include "program_file.hpp"

namespace parity {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;

TEST_CASE("names: a convolution's taps and its padding") {
  at::manual_seed(41);
  const at::Tensor x = at::randn({2, 3, 8, 6}), w = at::randn({5, 3, 3, 3}), b = at::randn({5});
  const std::vector<int64_t> two{2, 2}, one{1, 1}, none{0, 0};
  const auto conv = [&](const at::Tensor& in, const at::Tensor& weight, const std::vector<int64_t>& padding) {
    return at::convolution(in, weight, b, two, padding, one, false, none, 1);
  };
  const auto said_of = [&](const at::Tensor& theirs) {
    ProgramFile file("convolved.h5");
    file.op("aten::convolution",
            {ref(file.leaf(x)), ref(file.leaf(w)), ref(file.leaf(b)), json(two), json(one), json(one), false,
             json(none), 1},
            {conv(x, w, one)});
    return diagnosis_of(file, theirs);
  };
  const std::string flipped = said_of(conv(x, w.flip({2, 3}), one));
  CHECK_MESSAGE(flipped.starts_with("kernel flipped ("), flipped);
  const std::string same = said_of(conv(at::constant_pad_nd(x, {0, 1, 0, 1}), w, none));
  CHECK_MESSAGE(same.starts_with("convolution padding (as SAME pads"), same);
  const std::string reflected = said_of(conv(at::pad(x, {1, 1, 1, 1}, "reflect"), w, none));
  CHECK_MESSAGE(reflected.starts_with("convolution padding (reflected for zeros"), reflected);
  const std::string repeated = said_of(conv(at::pad(x, {1, 1, 1, 1}, "replicate"), w, none));
  CHECK_MESSAGE(repeated.starts_with("convolution padding (repeated for zeros"), repeated);
}

TEST_CASE("names: taps of a transposed convolution, and of one along time, in reverse order") {
  at::manual_seed(42);
  for (const bool transposed : {false, true}) {
    CAPTURE(transposed);
    const at::Tensor x = at::randn({2, 4, 9}), w = at::randn({4, 4, 4});
    const std::vector<int64_t> one{1}, stride{transposed ? 2 : 1}, none{0};
    const auto conv = [&](const at::Tensor& weight) {
      return at::convolution(x, weight, {}, stride, none, one, transposed, none, 1);
    };
    ProgramFile file("taps.h5");
    file.op(
        "aten::convolution",
        {ref(file.leaf(x)), ref(file.leaf(w)), nullptr, json(stride), json(none), json(one), transposed, json(none), 1},
        {conv(w)});
    const std::string said = diagnosis_of(file, conv(w.flip({2})));
    CHECK_MESSAGE(said.starts_with("kernel flipped ("), said);
  }
}

}  // namespace parity
