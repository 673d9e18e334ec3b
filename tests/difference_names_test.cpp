// What names of faults of differences are found: guidance, exchanged operands.
#include <doctest/doctest.h>

#include "program_file.hpp"

namespace parity {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;

TEST_CASE("names: guidance added to the other prediction, and its difference taken the other way") {
  at::manual_seed(22);
  const json hidden = {{"store", false}};
  const at::Tensor u = at::randn({2, 4, 6}), c = u + .3 * at::randn({2, 4, 6});
  for (const bool to_second : {true, false}) {
    CAPTURE(to_second);
    ProgramFile file("guidance.h5");
    const int64_t unconditional = file.leaf(u, {"inputs/u"}), conditional = file.leaf(c, {"inputs/c"});
    const int64_t a = file.op("aten::mul.Tensor", {ref(unconditional), 1.5}, {u * 1.5}, {}, hidden);
    const int64_t b = file.op("aten::mul.Tensor", {ref(conditional), 1.5}, {c * 1.5}, {}, hidden);
    const at::Tensor difference = c * 1.5 - u * 1.5, scaled = difference * 5, base = (to_second ? u : c) * 1.5,
                     other = (to_second ? c : u) * 1.5;
    const int64_t d = file.op("aten::sub.Tensor", {ref(b), ref(a)}, {difference}, {}, hidden);
    const int64_t s = file.op("aten::mul.Tensor", {ref(d), 5.0}, {scaled}, {}, hidden);
    file.op("aten::add.Tensor", {ref(to_second ? a : b), ref(s)}, {base + scaled});
    const std::string form = diagnosis_of(file, other + scaled), turned = diagnosis_of(file, base - scaled);
    CHECK_MESSAGE(form.starts_with("guidance form ("), form);
    CHECK_MESSAGE(turned.starts_with("sign (operands of the difference exchanged at "), turned);
  }
}

}  // namespace parity
