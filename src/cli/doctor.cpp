// parity-check doctor: what is installed, which devices, which dtypes are native.
#include <ATen/Context.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/command.hpp"
#include "cli/print.hpp"
#include "kernels/cuda/compare.hpp"
#include "report/sink.hpp"
#include "trace/machine.hpp"

namespace parity::cli {
namespace {

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((std::filesystem::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

bool has_flag(const Machine& m, const std::string& flag) {
  return (" " + m.cpu_flags + " ").find(" " + flag + " ") != std::string::npos;
}

std::string gpu_text(const std::vector<kernels::cuda::Device>& gpus, const std::string& why) {
  std::vector<std::string> parts;
  for (const auto& gpu : gpus)
    parts.push_back(fmt::format("{} (compute capability {}, {:.0f} GiB)", gpu.name, gpu.capability,
                                static_cast<double>(gpu.bytes) / (1 << 30)));
  return parts.empty() ? why : fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::json gpus_json(const std::vector<kernels::cuda::Device>& gpus) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& gpu : gpus)
    json.push_back({{"name", gpu.name}, {"compute_capability", gpu.capability}, {"bytes", gpu.bytes}});
  return json;
}

void print_doctor(const Machine& m, const nlohmann::json& json, const std::string& gpus) {
  print("parity-check {} with LibTorch {} (oneDNN {}, MKL {}, CUDA {})\n", PARITY_VERSION, m.libtorch, at::hasMKLDNN(),
        at::hasMKL(), at::hasCUDA());
  print("CPU        {}, ATen kernels {}, {} threads\n", m.cpu, m.cpu_capability, m.threads);
  print("native     fp64, fp32{}{}; others are converted\n", json["native_bf16"] ? ", bf16" : "",
        json["native_fp16"] ? ", fp16" : "");
  print("gnuplot    {}\n", json["gnuplot"] ? "found" : "missing: reports have tables only; install gnuplot-nox");
  print("GPU        {}\n", gpus);
  print("           {}\n", at::hasCUDA() ? "this LibTorch can use it: --device cuda"
                                         : "LibTorch: the CPU build, or no GPU; programs are replayed on the CPU");
  print("kernels    {}\n",
        kernels::cuda::architectures().empty()
            ? "for the CPU; those for CUDA are not built in"
            : fmt::format("for the CPU and for CUDA, compute capabilities {}", kernels::cuda::architectures()));
  print("dumps      {}\n", embedded_dumps_folder().string());
}

int doctor(const Common& common) {
  const Machine m = this_machine();
  std::string why;
  const auto gpus = kernels::cuda::devices(why);
  nlohmann::json json = {{"version", PARITY_VERSION},
                         {"libtorch", m.libtorch},
                         {"cpu", m.cpu},
                         {"cpu_capability", m.cpu_capability},
                         {"cpu_flags", m.cpu_flags},
                         {"threads", m.threads},
                         {"onednn", at::hasMKLDNN()},
                         {"mkl", at::hasMKL()},
                         {"cuda", at::hasCUDA()},
                         {"cuda_kernels", kernels::cuda::architectures()},
                         {"gpus", gpus_json(gpus)},
                         {"native_bf16", has_flag(m, "avx512_bf16") || has_flag(m, "amx_bf16")},
                         {"native_fp16", has_flag(m, "avx512_fp16")},
                         {"gnuplot", on_path("gnuplot")},
                         {"reference_dumps", embedded_dumps_folder().string()}};
  if (!common.quiet) print_doctor(m, json, gpu_text(gpus, why));
  if (!common.json.empty()) write_result(common.json, json);
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto common = std::make_shared<Common>();
  CLI::App* command = app.add_subcommand("doctor", "What is installed, which devices, which dtypes are native");
  add_common(*command, *common);
  command->callback([common, &action] { action = [common] { return doctor(*common); }; });
}

}  // namespace parity::cli
