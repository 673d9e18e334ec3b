// Where stored tensors lie in memory: kept by the writer, restored by the reader, refused where a file asks for what
// cannot be.
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/error.hpp"
#include "dump/dump.hpp"
#include "dump/dump_writer.hpp"
#include "dump/placement.hpp"
#include "recording_file.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

const float kCounted[6] = {0, 1, 2, 3, 4, 5};

// The error of reading value "0", a float tensor of shape (2, 3) with these attributes; "" for none.
std::string layout_read(const std::vector<int64_t>& loose, const std::vector<int64_t>& strides = {},
                        const float* numbers = kCounted) {
  const TemporaryFile path("layout.h5");
  RecordingFile file(path.path());
  file.raw("0", H5T_IEEE_F32LE, {2, 3}, numbers, "float32");
  if (!loose.empty()) file.integers("0", "loose_strides", loose);
  if (!strides.empty()) file.integers("0", "strides", strides);
  file.close();
  const Dump dump(path.path());
  try {
    const at::Tensor tensor = dump.value("0");
    if (!loose.empty()) CHECK(tensor.strides() == at::IntArrayRef(loose));
    CHECK(same_bits(tensor, at::tensor(at::ArrayRef<float>(numbers, 6)).view({2, 3})));
    return "";
  } catch (const Error& error) {
    CHECK(contains(error.what(), path.path().string() + ": dataset '/values/0'"));
    return error.what();
  }
}

}  // namespace

TEST_CASE("dump: a tensor is read where it lay when it was written: strides, gaps, shared memory, address") {
  const test::Scratch scratch;
  const at::Tensor x = at::rand({4, 64}), y = at::rand({2, 32, 9, 9}), z = at::randn({5, 7}, at::kComplexDouble);
  const std::map<std::string, at::Tensor> tensors{
      {"columns", x.slice(1, 0, 64, 2)},
      {"later columns", x.slice(1, 1, 64, 2)},
      {"part", x.slice(0, 1).slice(1, 3)},
      {"expanded", x.slice(0, 0, 1).expand({4, 64})},
      {"expanded part", x.slice(1, 5, 6).expand({3, 4, 8})},
      {"NaN, expanded", at::full({1, 8}, NAN).expand({4, 8})},
      {"channels last", y.contiguous(at::MemoryFormat::ChannelsLast)},
      {"one channel, last", at::rand({2, 1, 9, 9}).as_strided({2, 1, 9, 9}, {81, 1, 9, 1})},
      {"cropped", y.contiguous(at::MemoryFormat::ChannelsLast).slice(2, 1, 8).slice(3, 1, 8)},
      {"complex", z.slice(1, 0, 7, 3)},
      {"bf16", x.to(at::kBFloat16).slice(1, 3, 64, 2)},
      {"bool", x.gt(.5).slice(1, 0, 64, 2)}};
  {
    DumpWriter writer(scratch / "all.h5", {});
    for (const auto& [key, tensor] : tensors) writer.value(key, tensor);
    writer.value("windows", at::rand({70}).unfold(0, 64, 1));
    writer.value("far apart", at::rand({4, 1000}).slice(1, 0, 1));
    writer.close();
  }
  const Dump dump(scratch / "all.h5");
  for (const auto& [key, tensor] : tensors) {
    CAPTURE(key);
    const at::Tensor read = dump.value(key);
    CHECK(same_bits(read, tensor));
    CHECK(read.strides() == tensor.strides());
    CHECK(misalignment(read) == misalignment(tensor));
    CHECK(read.storage_offset() == 0);  // its storage begins with it: as_strided counts from there
  }
  CHECK(dump.value("windows").is_contiguous());
  CHECK(dump.value("far apart").is_contiguous());
}

TEST_CASE("dump: strides with gaps and shared elements are held against the shape and the numbers") {
  CHECK(layout_read({}) == "");
  CHECK(layout_read({6, 2}) == "");
  CHECK(layout_read({1, 2}) == "");  // dense, but harmless
  CHECK(layout_read({7, 2}) == "");
  CHECK(layout_read({192, 64}) == "");
  const float same[6] = {0, 1, 2, 0, 1, 2};
  CHECK(layout_read({0, 2}, {}, same) == "");
  CHECK(contains(layout_read({0, 2}), "share memory by its loose_strides, but differ"));
  for (const auto& strides : std::vector<std::vector<int64_t>>{{1},
                                                               {1, 1},
                                                               {6, 2, 1},
                                                               {-6, 2},
                                                               {2, 2},
                                                               {1000, 1},
                                                               {INT64_MAX, 1},
                                                               {INT64_MAX, INT64_MAX},
                                                               {1, INT64_MAX / 2}}) {
    CAPTURE(strides.front());
    CHECK(contains(layout_read(strides), "at which no tensor of shape [2, 3] is kept"));
  }
  CHECK(contains(layout_read({6, 2}, {1, 2}), "at which no tensor"));  // one or the other
}

TEST_CASE("placement: a value goes where another lay, elements that share memory only where the values allow") {
  const at::Tensor value = at::rand({4, 32}), columns = at::rand({4, 64}).slice(1, 0, 64, 2);
  const at::Tensor placed = placed_like(value, columns);
  CHECK(placed.strides() == columns.strides());
  CHECK(at::equal(placed, value));
  const at::Tensor expanded = at::rand({1, 32}).expand({4, 32});
  CHECK(placed_like(value, expanded).is_contiguous());
  CHECK(at::equal(placed_like(value, expanded), value));
  const at::Tensor constant = value.slice(0, 0, 1).expand({4, 32}).contiguous();
  CHECK(placed_like(constant, expanded).strides() == expanded.strides());
}
