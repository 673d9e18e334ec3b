// What FORMAT.md says can be stored comes back bit for bit.
#include <doctest/doctest.h>

#include "core/precision.hpp"
#include "dump/dump.hpp"
#include "recording_file.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

at::Tensor sample(at::ScalarType dtype) {
  const at::Tensor numbers = at::arange(24, at::kFloat).view({2, 3, 4}).sub(7.3);
  if (dtype == at::kBool) return numbers.gt(0);
  if (at::isComplexType(dtype)) return at::complex(numbers, numbers.neg()).to(dtype);
  return (at::isIntegralType(dtype, false) ? numbers.abs() : numbers).to(dtype);
}

}  // namespace

TEST_CASE("dump: tensors of every dtype come back bit for bit") {
  for (const auto dtype :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kLong, at::kInt,
        at::kShort, at::kChar, at::kByte, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    CAPTURE(dtype_name(dtype));
    const TemporaryFile file("dtype.h5");
    const at::Tensor tensor = sample(dtype);
    RecordingFile recording(file.path());
    recording.value("0", tensor);
    recording.value("1", tensor.permute({2, 0, 1}));
    recording.value("2", tensor[0][0][0]);
    recording.value("3", tensor.narrow(1, 0, 0));
    recording.close();
    const Dump dump(file.path());
    CHECK(same_bits(dump.value("0"), tensor));
    CHECK(same_bits(dump.value("1"), tensor.permute({2, 0, 1})));
    CHECK(dump.value("1").strides().vec() == tensor.permute({2, 0, 1}).strides().vec());
    CHECK(same_bits(dump.value("2"), tensor[0][0][0]));
    CHECK(dump.value("2").dim() == 0);
    CHECK(dump.value("3").sizes().vec() == std::vector<int64_t>{2, 0, 4});
    CHECK(dtype_name(dump.value_type("1").first) == dtype_name(dtype));
    CHECK(dump.value_type("1").second == std::vector<int64_t>{4, 2, 3});
  }
}

TEST_CASE("dump: special bfloat16 values keep their bits, as float type and as 16-bit integers") {
  const at::Tensor bits = at::arange(-32768, 32768, at::kLong).to(at::kShort);
  const TemporaryFile file("bf16.h5");
  RecordingFile recording(file.path());
  recording.value("0", bits.view(at::kBFloat16));
  recording.raw("1", H5T_STD_U16LE, {65536}, bits.const_data_ptr(), "bfloat16");
  recording.raw("2", H5T_STD_I16LE, {65536}, bits.const_data_ptr(), "bfloat16");
  recording.close();
  const Dump dump(file.path());
  for (const char* key : {"0", "1", "2"}) CHECK(same_bits(dump.value(key).view(at::kShort), bits));
}

TEST_CASE("dump: weights, inputs and attributes are found by name") {
  const TemporaryFile file("names.h5");
  const at::Tensor tensor = sample(at::kFloat);
  RecordingFile recording(file.path());
  recording.value("0", tensor);
  recording.value("1", tensor + 1);
  for (const char* name : {"weights/b.weight", "weights/a.tied", "weights/odd%2Fname"}) recording.link(name, "0");
  recording.link("inputs/0/hidden_states", "1");
  recording.link("inputs/3/x.0", "1");
  recording.attribute("provenance", R"({"threads": 2})");
  recording.event({{"e", "note"}, {"text", "hello"}});
  recording.close();
  const Dump dump(file.path());
  CHECK(dump.complete());
  CHECK(dump.level() == "op");
  CHECK(dump.model() == "Test");
  CHECK(dump.provenance()["threads"] == 2);
  CHECK(dump.weight_names() == std::vector<std::string>{"a.tied", "b.weight", "odd/name"});
  CHECK(same_bits(dump.weight("odd/name"), tensor));
  CHECK(same_bits(dump.weight("a.tied"), tensor));
  CHECK_FALSE(dump.has_weight("c"));
  CHECK(dump.input_names() == std::vector<std::string>{"hidden_states"});
  CHECK(dump.input_names(3) == std::vector<std::string>{"x.0"});
  CHECK(dump.input_names(1).empty());
  CHECK(same_bits(dump.input("x.0", 3), tensor + 1));
  CHECK_FALSE(dump.has_input("x.0", 2));
  CHECK(dump.value_keys() == std::vector<std::string>{"0", "1"});
  CHECK(dump.events().size() == 1);
}

TEST_CASE("dump: an interrupted recording loses only its half-written last line") {
  const TemporaryFile file("interrupted.h5");
  RecordingFile recording(file.path());
  recording.event({{"e", "note"}, {"n", 1}});
  recording.event({{"e", "note"}, {"n", 2}});
  recording.text(R"({"e": "no)");
  recording.close(/*complete=*/false);
  const Dump dump(file.path());
  CHECK_FALSE(dump.complete());
  CHECK(dump.events().size() == 2);
}

TEST_CASE("dump: SHA-256 agrees with the standard's test vector") {
  const TemporaryFile file("abc");
  FILE* out = std::fopen(file.path().c_str(), "wb");
  std::fputs("abc", out);
  std::fclose(out);
  CHECK(sha256_of_file(file.path()) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2, B.1
}
