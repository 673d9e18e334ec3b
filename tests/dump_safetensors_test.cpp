// Files written byte by byte after the format's description.
#include "dump/safetensors.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "recording_file.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

void write_safetensors(const std::filesystem::path& path, const std::string& header, const std::string& data,
                       int64_t length = -1) {
  std::ofstream out(path, std::ios::binary);
  const uint64_t size = length < 0 ? header.size() : static_cast<uint64_t>(length);
  for (int byte = 0; byte < 8; ++byte) out.put(static_cast<char>(size >> (8 * byte)));
  out << header << data;
}

std::string content_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::string refusal(const std::string& header, const std::string& data, int64_t length = -1) {
  const TemporaryFile file("bad.safetensors");
  write_safetensors(file.path(), header, data, length);
  try {
    const Safetensors opened(file.path());
    for (const auto& name : opened.names()) opened.tensor(name);
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(file.path().string()) != std::string::npos);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("dump: safetensors give names, dtypes, shapes and bits, also misaligned ones") {
  const at::Tensor odd = at::arange(3, at::kByte), half = at::tensor({1.5, -2.0}).to(at::kBFloat16),
                   wide = at::arange(6, at::kDouble).view({2, 3});
  const TemporaryFile file("good.safetensors");
  write_safetensors(
      file.path(),
      R"({"__metadata__":{"format":"pt"},"odd":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
      R"("half":{"dtype":"BF16","shape":[2],"data_offsets":[3,7]},"wide":{"dtype":"F64","shape":[2,3],"data_offsets":[7,55]},)"
      R"("none":{"dtype":"F32","shape":[0,4],"data_offsets":[55,55]}})",
      content_of(odd) + content_of(half) + content_of(wide));
  at::Tensor kept;
  {
    const Safetensors opened(file.path());
    CHECK(opened.names() == std::vector<std::string>{"half", "none", "odd", "wide"});
    CHECK(same_bits(opened.tensor("odd"), odd));
    CHECK(same_bits(opened.tensor("half"), half));
    CHECK(same_bits(opened.tensor("wide"), wide));
    CHECK(opened.tensor("none").sizes().vec() == std::vector<int64_t>{0, 4});
    CHECK(dtype_name(opened.dtype("half")) == "bfloat16");
    CHECK(opened.has("odd"));
    CHECK_THROWS_AS(opened.tensor("missing"), Error);
    kept = opened.tensor("odd");
    kept.add_(1);  // stays in this process
    CHECK(same_bits(Safetensors(file.path()).tensor("odd"), odd));
  }
  CHECK(same_bits(kept, odd + 1));  // the mapping outlives the reader
}

TEST_CASE("dump: hostile safetensors are refused") {
  const std::string eight(8, '\0');
  const auto one = [](const std::string& entry) { return R"({"a":)" + entry + "}"; };
  CHECK(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), eight) == "no error");
  CHECK(contains(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "abc"), "truncated"));
  CHECK(
      contains(refusal(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), eight), "do not make the 8 bytes"));
  CHECK(contains(refusal(one(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"), "abcd"),
                 "do not make"));
  CHECK(contains(refusal(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), eight), "non-negative"));
  CHECK(contains(refusal(one(R"({"dtype":"F32","shape":[1],"data_offsets":[8,4]})"), eight), "data_offsets"));
  CHECK(contains(refusal(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), eight), "hole"));
  CHECK(contains(refusal(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), eight),
                 "4 bytes after the last tensor"));
  CHECK(contains(refusal(one(R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})"), eight), "dtype F4 cannot be read"));
  CHECK(contains(refusal(one(R"({"dtype":"BOOL","shape":[1],"data_offsets":[0,1]})"), "\x07"), "other than 0 and 1"));
  CHECK(contains(refusal(one("3"), eight), "does not give dtype"));
  CHECK(contains(refusal("[1]", ""), "not a JSON object"));
  CHECK(contains(refusal("{", ""), "not a JSON object"));
  CHECK(contains(refusal("{}", "", int64_t{1} << 62), "not a safetensors file"));
  CHECK(contains(
      refusal(
          R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
          eight),
      "overlap"));
}

TEST_CASE("dump: sharded safetensors are read through their index, which cannot lead elsewhere") {
  const TemporaryFile shard("shard.safetensors"), index("model.safetensors.index.json");
  write_safetensors(shard.path(), R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xy");
  const auto map = [&](const std::string& name, const std::string& file) {
    std::ofstream(index.path()) << nlohmann::json{{"weight_map", {{name, file}}}};
    try {
      return std::string(Safetensors(index.path()).tensor(name).numel() == 2 ? "two" : "other");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(map("a", shard.path().filename()) == "two");
  CHECK(contains(map("b", shard.path().filename()), "'b' is not in its shard"));
  CHECK(contains(map("a", "../../etc/passwd"), "not the name of a file beside it"));
  CHECK(contains(map("a", "gone.safetensors"), "gone.safetensors: cannot be opened"));
  std::ofstream(index.path()) << "[]";
  CHECK_THROWS_AS(Safetensors(index.path()), Error);
}
