// What is said of a machine and of a run's settings: one row a fact, read from a recording's provenance and from the
// report's machine. Private to src/report.
#pragma once
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace parity {

enum class Same { text, version, never };  // never: shown, but another value changes no number

struct Fact {
  std::string_view what, recorded, here;  // the key in a recording's provenance ("cudnn.version"), in `machine`
  Same same = Same::text;
  bool in_line = false;  // in the short line
  bool of_gpus = false;  // means nothing of what was computed on a CPU
};
inline constexpr std::string_view kFeaturesRow = "CPU features";
inline constexpr std::array kFacts{
    Fact{"CPU", "cpu", "cpu", Same::text, true},
    Fact{"kernels for", "cpu_capability", "cpu_capability", Same::text, true},
    Fact{kFeaturesRow, "cpu_flags", "cpu_flags"},
    Fact{"torch", "torch", "libtorch", Same::version, true},
    Fact{"other libraries", "libraries", ""},
    Fact{"device", "device", "device"},
    Fact{"GPU", "device_name", "device_name", Same::text, true},
    Fact{"compute capability", "compute_capability", "compute_capability"},
    Fact{"CUDA", "cuda", "cuda", Same::text, false, true},
    Fact{"cuDNN", "cudnn.version", "cudnn", Same::text, false, true},
    Fact{"threads", "threads", "threads", Same::text, true},
    Fact{"model's dtype", "dtype", "", Same::never},
    Fact{"autocast", "autocast", ""},
    Fact{"TF32", "tf32", "tf32", Same::text, false, true},
    Fact{"fp32 precision", "fp32_precision", "", Same::text, false, true},
    Fact{"sums of half products in half", "reduced_precision_reduction", "", Same::text, false, true},
    Fact{"matmul precision", "matmul_precision", ""},
    Fact{"attention backends", "sdpa", "", Same::text, false, true},
    Fact{"cuDNN used", "cudnn.enabled", "", Same::text, false, true},
    Fact{"cuDNN chooses by trying", "cudnn.benchmark", "", Same::text, false, true},
    Fact{"cuDNN deterministic", "cudnn.deterministic", "", Same::text, false, true},
    Fact{"GPU settings", "gpu_settings", "", Same::text, false, true},
    Fact{"deterministic algorithms", "deterministic", ""},
    Fact{"oneDNN", "mkldnn", ""},
    Fact{"training mode", "training", ""},
    Fact{"seed", "seed", "", Same::never},
    Fact{"Python", "python", "", Same::never},
    Fact{"system", "platform", "", Same::never},
    Fact{"recorded", "time", "", Same::never},
};

inline constexpr int kDeepest = 16;  // of others' JSON; nobody reads further

/// A setting as text: "cudnn on, matmul off"; "" for null.
std::string words_of_setting(const nlohmann::json& value, int depth = 0);

/// What a provenance or a machine says under `key`, dots leading into its tables; "" where it says nothing.
std::string fact_of(const nlohmann::json& from, std::string_view key);

/// What the report's machine says. `gpus`: some side was recorded on a GPU, so that a machine that states no device is
/// said to have replayed it on its CPU, which rounds no operand to TF32.
std::string fact_here(const nlohmann::json& machine, const Fact& fact, bool gpus);

}  // namespace parity
