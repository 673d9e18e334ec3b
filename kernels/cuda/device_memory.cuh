// Memory of a CUDA device that is freed with its owner, and errors of the CUDA runtime as ours.
#pragma once
#include <cuda_runtime.h>

#include <map>
#include <mutex>
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

/// The current device's pool of freed blocks: cudaMalloc and cudaFree take longer than measuring 100 MB. Our own, as
/// LibTorch has one, and small beside a device's memory.
inline cudaMemPool_t memory_pool() {
  static std::mutex one_at_a_time;
  static std::map<int, cudaMemPool_t> pools;
  const std::lock_guard lock(one_at_a_time);
  int device = 0;
  check(cudaGetDevice(&device), "finding a device");
  const auto [found, is_new] = pools.try_emplace(device, nullptr);
  if (is_new) {
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location = {cudaMemLocationTypeDevice, device};
    uint64_t kept = uint64_t{128} << 20;
    check(cudaMemPoolCreate(&found->second, &wanted), "making a pool of memory");
    check(cudaMemPoolSetAttribute(found->second, cudaMemPoolAttrReleaseThreshold, &kept),
          "setting up a pool of memory");
  }
  return found->second;
}

/// On the default stream, on which LibTorch works too: everything before it has been done, what follows comes after it.
constexpr cudaStream_t kStream = nullptr;

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t count) {
    const size_t bytes = static_cast<size_t>(count < 1 ? 1 : count) * sizeof(T);
    check(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&data_), bytes, memory_pool(), kStream),
          "allocating memory");
  }
  ~DeviceArray() { cudaFreeAsync(data_, kStream); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class T>
void set_to_zero(T* device, int64_t count) {
  check(cudaMemsetAsync(device, 0, static_cast<size_t>(count) * sizeof(T), kStream), "clearing memory");
}

/// Waits for what was started before.
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
