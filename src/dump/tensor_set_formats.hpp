// One function a format; the table that chooses among them is in tensor_set.cpp. Private to src/dump.
#pragma once
#include "dump/json_file.hpp"
#include "dump/tensor_set.hpp"

namespace parity {

std::unique_ptr<TensorSet> open_safetensors_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_npy_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_npz_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_torch_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_json_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_folder_set(const std::filesystem::path& folder);

/// Other tools' JSON, which names the files that hold the tensors; `document`: what is in `file`.
std::unique_ptr<TensorSet> open_debugger_tree(const std::filesystem::path& file, const OrderedJson& document);
std::unique_ptr<TensorSet> open_run_results(const std::filesystem::path& file, const OrderedJson& document);
std::unique_ptr<TensorSet> open_msprobe_dump(const std::filesystem::path& file, const OrderedJson& document);

/// "path", of later calls "path (call 1)": how a set names the results of calls, and tensors_of reads them.
std::string name_of_call(const std::string& path, int call);

/// Is this, by its name, a JSON that stands for the folder it lies in?
bool is_tool_json(const std::filesystem::path& file);

}  // namespace parity
