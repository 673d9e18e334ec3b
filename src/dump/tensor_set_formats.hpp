// One function a format; the table that chooses among them is in tensor_set.cpp. Private to src/dump.
#pragma once
#include "dump/tensor_set.hpp"

namespace parity {

std::unique_ptr<TensorSet> open_safetensors_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_npy_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_npz_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_torch_set(const std::filesystem::path& file);
std::unique_ptr<TensorSet> open_folder_set(const std::filesystem::path& folder);

}  // namespace parity
