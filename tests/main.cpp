// The tests' own main: LibTorch's static objects are not destroyed (0.1 s for each of the test cases, which ctest
// starts one by one).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "video/sources.hpp"

int main(int argc, char** argv) {
  parity::read_arrays_with(parity::open_array);
  const int status = doctest::Context(argc, argv).run();
  std::fflush(nullptr);
  std::_Exit(status);
}
