// What machine this is, as far as it changes the bits that kernels compute.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace parity {

struct Machine {
  std::string cpu;             // model name
  std::string cpu_capability;  // ATen's dispatch level: DEFAULT, AVX2, AVX512
  std::string cpu_flags;       // instruction sets that change kernels, space separated
  std::string libtorch;        // version
  int threads = 1;             // ATen's intra-op threads
  std::string device;          // on which recordings are replayed: "cpu", "cuda:0"
  // Of a CUDA device, else "": its name and compute capability ("9.0"; known to a build with CUDA kernels), the
  // versions of LibTorch's CUDA runtime ("13.0") and cuDNN ("91002").
  std::string device_name, compute_capability, cuda, cudnn;
};

/// Reads /proc/cpuinfo and asks LibTorch.
Machine this_machine();

/// What makes this process run other kernels than the one that recorded, in words ("cpu_flags: amx_bf16 here alone");
/// "" when LibTorch and the libraries behind it choose the same ones. They choose by everything compared here: the
/// version, the device, ATen's level, the whole set of instruction sets (a recording without AMX is not reproduced
/// where oneDNN finds it), the model (MKL asks for the maker, oneDNN's blocking for the caches), threads, oneDNN on or
/// off, and the environment variables that restrict them. On a CUDA device by its name, the versions of LibTorch, CUDA
/// and cuDNN; the switches are set as recorded (trace/settings.hpp). `provenance`: a recording's (FORMAT.md).
std::string other_kernels(const nlohmann::json& provenance);

}  // namespace parity
