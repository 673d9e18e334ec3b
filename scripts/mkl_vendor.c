// Loaded before LibTorch (LD_PRELOAD) by mkl_vendor.py: tells MKL which maker's CPU it runs on. MKL keeps kernels of its own for Intel's CPUs and
// takes others elsewhere, whatever instructions a CPU has; these two functions, exported by LibTorch, are what it asks.
#include <stdlib.h>
#include <string.h>

static int as_intel(void) {
  const char* vendor = getenv("PARITY_MKL_VENDOR");
  return vendor != NULL && strcmp(vendor, "intel") == 0;
}

int mkl_serv_intel_cpu(void) { return as_intel(); }
int mkl_serv_intel_cpu_true(void) { return as_intel(); }
