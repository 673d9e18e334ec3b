// Memory of a CUDA device that is freed with its owner, and errors of the CUDA runtime as ours.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "core/error.hpp"

namespace parity::kernels::cuda {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw Error(std::string("CUDA, ") + what + ": " + cudaGetErrorString(status) +
                "; see parity-check doctor, or run without --device");
}

/// Makes `device` the current one of this thread for a while.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_), "finding a device");
    check(cudaSetDevice(device), "choosing a device");
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t count) {
    check(cudaMalloc(&data_, static_cast<size_t>(count < 1 ? 1 : count) * sizeof(T)), "allocating memory");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

/// Waits for everything before it on the default stream, on which LibTorch works too.
template <class T>
void to_host(const T* device, int64_t count, T* host) {
  check(cudaMemcpy(host, device, static_cast<size_t>(count) * sizeof(T), cudaMemcpyDeviceToHost), "copying a result");
}

/// Blocks that keep the current device busy.
inline int busy_blocks(const void* kernel, int threads) {
  int device = 0, processors = 0, each = 0;
  check(cudaGetDevice(&device), "finding a device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "asking for its processors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, 0), "asking for its occupancy");
  return processors * (each < 1 ? 1 : each);
}

}  // namespace parity::kernels::cuda
