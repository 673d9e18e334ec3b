// What LibTorch computes here, recorded: below the composite ops, with ids that follow tensors, and arguments that the
// replay's own decoder takes back.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "recording_file.hpp"
#include "trace/arguments.hpp"
#include "trace/capture.hpp"

using namespace parity;

namespace {

struct Seen {
  std::vector<CapturedOp> ops;
  Capture capture{[this](CapturedOp op) { ops.push_back(std::move(op)); }};

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const CapturedOp& op : ops) names.push_back(op.event["op"].get<std::string>());
    return names;
  }
};

// The op called again by the program's own decoder, on what the capture knows.
at::Tensor again(const Seen& seen, const CapturedOp& captured) {
  Op op;
  op.name = captured.event["op"].get<std::string>();
  op.args = captured.event["args"];
  op.kwargs = captured.event["kwargs"];
  const auto handle = find_operator(op.name);
  REQUIRE(handle);
  torch::jit::Stack stack =
      read_arguments(op, handle->schema(), Precision::recorded, [&](int64_t id) { return seen.capture.tensor(id); });
  handle->callBoxed(&stack);
  return *flatten_results(stack).front();
}

}  // namespace

TEST_CASE("capture: composite ops come apart as in PyTorch's recordings") {
  Seen seen;
  const at::Tensor x = at::randn({2, 3, 5}), w = at::randn({4, 5}), b = at::randn({4});
  at::Tensor y;
  seen.capture.during([&] { y = at::gelu(at::linear(x, w, b), "tanh"); });
  const std::vector<std::string> names = seen.names();
  CHECK(std::find(names.begin(), names.end(), "aten::addmm") != names.end());
  CHECK(names.back() == "aten::gelu");
  CHECK(std::find(names.begin(), names.end(), "aten::linear") == names.end());
  CHECK(seen.ops.back().event["kwargs"]["approximate"] == "tanh");
  CHECK(seen.ops.back().makes == std::vector<int64_t>{seen.capture.id_of(y)});
  CHECK(seen.ops.back().event["out"][0]["s"] == nlohmann::json({2, 3, 4}));
}

TEST_CASE("capture: what is recorded runs again to the same bits") {
  Seen seen;
  const at::Tensor x = at::randn({3, 4, 6});
  x[0][0].fill_(-1);  // masked altogether: its softmax is NaN, which has bits, too
  const at::Tensor mask = x.gt(0);
  seen.capture.during([&] {
    const at::Tensor a = at::where(mask, at::mul(x, 2.5), at::full_like(x, -std::numeric_limits<double>::infinity()));
    const at::Tensor b = at::softmax(at::cat({a, x}, 1), -1).to(at::kDouble).transpose(0, 2);
    at::sum(b.slice(1, 1, 5, 2), {0, 1}, /*keepdim=*/true);
  });
  CHECK(seen.ops.size() >= 8);
  size_t views = 0;
  for (const CapturedOp& op : seen.ops) {
    CAPTURE(op.event.dump());
    CHECK(testing::same_bits(again(seen, op), seen.capture.tensor(op.makes.front())));
    views += op.event.contains("view");
  }
  CHECK(views == 2);
}

TEST_CASE("capture: nothing is seen outside, nor what is done unseen") {
  Seen seen;
  const at::Tensor x = at::randn({3});
  at::add(x, 1);
  seen.capture.during([&] { unseen([&] { CHECK(at::add(x, 1).numel() == 3); }); });
  at::add(x, 1);
  CHECK(seen.ops.empty());
  CHECK_THROWS(seen.capture.during([&] { at::mm(x, x); }));
  at::add(x, 1);
  CHECK(seen.ops.empty());
}

TEST_CASE("capture: results whose size depends on values are to be stored") {
  Seen seen;
  seen.capture.during([&] { at::nonzero(at::eye(3)); });
  REQUIRE(seen.ops.size() == 2);
  CHECK(seen.ops.back().dynamic);
  CHECK(seen.ops.back().event["opaque"] == "data-dependent");
}
