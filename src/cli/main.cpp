// parity-check: the program.
#include <cstdio>

int main() {
  std::puts("parity-check " PARITY_VERSION);
  return 0;
}
