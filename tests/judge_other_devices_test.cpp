// What another device's kernels leave otherwise is no fault, and what looks like it is one.
#include <doctest/doctest.h>

#include "program_file.hpp"

namespace parity {

using testing::json;
using testing::judged_with;
using testing::ProgramFile;
using testing::ref;

TEST_CASE("judge: the same whole numbers may have another class of dtype, others may not") {
  const at::Tensor x = at::tensor({3, 1, 4, 1, 5, 9}, at::kInt);
  const auto judge = [&](const at::Tensor& recorded, const at::Tensor& candidate) {
    ProgramFile file("counts.h5");
    file.op("aten::clone", {ref(file.leaf(recorded))}, {recorded});
    return exit_status(judged_with(file, candidate));
  };
  CHECK(judge(x, x.to(at::kFloat)) == 0);
  CHECK(judge(x.to(at::kFloat), x) == 0);
  CHECK(judge(x, x.to(at::kFloat) + .25) == 1);
  CHECK(judge(x.to(at::kFloat) + .25, x) == 1);
  CHECK(judge(x, x > 1) == 1);
}

TEST_CASE("judge: a recorded sort may have equal values in another order than this machine's, and is trusted") {
  const at::Tensor x = at::tensor({2., 0., 2., 1., 0.}, at::kFloat);
  const auto judge = [&](const std::vector<int64_t>& recorded) {
    ProgramFile file("sorted.h5");
    const int64_t in = file.leaf(x);
    file.op("aten::sort", {ref(in)}, {std::get<0>(x.sort()), at::tensor(recorded, at::kLong)});
    return exit_status(judged_with(file, {}));
  };
  CHECK(judge({1, 4, 3, 0, 2}) == 0);
  CHECK(judge({4, 1, 3, 2, 0}) == 0);  // both ties the other way
  CHECK(judge({1, 4, 0, 3, 2}) == 3);  // 2 before 1
  CHECK(judge({1, 1, 3, 0, 2}) != 0);  // one twice, another never
}

TEST_CASE("judge: what a norm leaves for its derivative is compared where something reads it") {
  at::manual_seed(2);
  const at::Tensor x = at::randn({4, 8}).to(at::kBFloat16);
  const auto [y, mean, deviation] = at::native_layer_norm(x, {8}, {}, {}, 1e-5);
  const auto rows = [&](bool read) {
    ProgramFile file("norm.h5");
    const int64_t in = file.leaf(x);
    const int64_t out =
        file.op("aten::native_layer_norm", {ref(in), json::array({8}), nullptr, nullptr, 1e-5}, {y, mean, deviation});
    if (read) file.op("aten::neg", {ref(out + 1)}, {mean.neg()});
    std::vector<std::string> paths;
    for (const OpResult& row : judged_with(file, {}).ops) paths.push_back(row.path);
    return paths;
  };
  CHECK(rows(false) == std::vector<std::string>{"~/native_layer_norm.0"});
  CHECK(rows(true) == std::vector<std::string>{"~/native_layer_norm.0", "~/native_layer_norm.0[1]", "~/neg.0"});
}

}  // namespace parity
