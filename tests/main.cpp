// The tests' own main: LibTorch's static objects are not destroyed (0.1 s for each of the test cases, which ctest
// starts one by one). Random numbers are the same in every run (LibTorch's own seed differs from run to run);
// PARITY_TEST_SEED=N draws others: an assertion has to hold for any.
#define DOCTEST_CONFIG_IMPLEMENT
#include <ATen/Context.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "video/sources.hpp"

int main(int argc, char** argv) {
  parity::read_arrays_with(parity::open_array);
  const char* seed = std::getenv("PARITY_TEST_SEED");
  at::manual_seed(seed ? std::strtoull(seed, nullptr, 10) : 0);
  const int status = doctest::Context(argc, argv).run();
  std::fflush(nullptr);
  std::_Exit(status);
}
