#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "core/numbers_in_text.hpp"
#include "core/precision.hpp"
#include "trace/machine.hpp"

using namespace parity;

TEST_CASE("precision: half-width floats rise to fp32, everything floating to fp64, integers stay") {
  CHECK(dtype_name(redirect(at::kBFloat16, Precision::recorded)) == dtype_name(at::kBFloat16));
  CHECK(dtype_name(redirect(at::kBFloat16, Precision::fp32)) == dtype_name(at::kFloat));
  CHECK(dtype_name(redirect(at::kDouble, Precision::fp32)) == dtype_name(at::kDouble));
  CHECK(dtype_name(redirect(at::kComplexFloat, Precision::fp32)) == dtype_name(at::kComplexFloat));
  CHECK(dtype_name(redirect(at::kComplexFloat, Precision::fp64)) == dtype_name(at::kComplexDouble));
  CHECK(dtype_name(redirect(at::kLong, Precision::fp64)) == dtype_name(at::kLong));
}

TEST_CASE("precision: names go both ways and unknown ones are an error") {
  for (const auto* name : {"float64", "bfloat16", "complex64", "bool", "float8_e4m3fn"})
    CHECK(dtype_name(parse_dtype(name)) == name);
  CHECK(dtype_name(parse_dtype("bf16")) == dtype_name(at::kBFloat16));
  CHECK_THROWS_AS(parse_dtype("float17"), Error);
}

TEST_CASE("precision: unit roundoff is what one rounding of 1 + u to even loses") {
  for (const auto dtype : {at::kBFloat16, at::kHalf, at::kFloat}) {
    const double u = unit_roundoff(dtype);
    CHECK(at::scalar_tensor(1 + u, at::kDouble).to(dtype).item<double>() == 1.0);
    CHECK(at::scalar_tensor(1 + 1.01 * u, at::kDouble).to(dtype).item<double>() == 1 + 2 * u);
  }
}

TEST_CASE("numbers in text: each run of digits, but none longer than what is asked for") {
  const auto found = [](std::string_view text, size_t longest) {
    std::string numbers;
    for (const auto& [begin, length] : numbers_in(text, longest))
      numbers += std::string(text.substr(begin, length)) + " ";
    return numbers;
  };
  CHECK(found("h.12.attn_3", 4) == "12 3 ");
  CHECK(found("7", 4) == "7 ");
  CHECK(found("a12345.6", 4) == "6 ");
  CHECK(numbers_in("").empty());
  CHECK(numbers_in("no number").empty());
}

TEST_CASE("machine: kernels are the recording's only when everything that libraries dispatch on is") {
  const Machine here = this_machine();
  nlohmann::json provenance{{"cpu", here.cpu},
                            {"cpu_capability", here.cpu_capability},
                            {"torch", here.libtorch},
                            {"threads", here.threads},
                            {"mkldnn", true},
                            {"kernel_settings", nlohmann::json::object()},
                            {"cpu_flags", nlohmann::json::array({"sse4_2"})}};
  std::istringstream flags(here.cpu_flags);
  for (std::string flag; flags >> flag;) provenance["cpu_flags"].push_back(flag);
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "MKL_DEBUG_CPU_TYPE"})
    if (const char* value = std::getenv(name)) provenance["kernel_settings"][name] = value;
  CHECK(other_kernels(provenance) == "");
  const auto without = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = provenance;
    changed[key] = value;
    return other_kernels(changed);
  };
  CHECK(without("cpu", "another").starts_with("cpu:"));
  CHECK(without("cpu_capability", "SVE").starts_with("cpu_capability:"));
  CHECK(without("torch", "2.4.0").starts_with("torch:"));
  CHECK(without("threads", here.threads + 1).starts_with("threads:"));
  CHECK(without("mkldnn", false).starts_with("mkldnn:"));
  CHECK(without("kernel_settings", {{"MKL_CBWR", "SSE2"}}).starts_with("kernel_settings:"));
  nlohmann::json more = provenance["cpu_flags"];  // a flag there that is not here; a flag here that is not there
  more.push_back("amx_tile");
  if (here.cpu_flags.find("amx_tile") == std::string::npos) CHECK(without("cpu_flags", more).starts_with("cpu_flags:"));
  if (!here.cpu_flags.empty()) CHECK(without("cpu_flags", {"sse4_2"}).starts_with("cpu_flags:"));
}

TEST_CASE("machine: capability and threads are known") {
  CHECK_FALSE(this_machine().cpu_capability.empty());
  CHECK(this_machine().threads >= 1);
}
