#include "core/beside.hpp"

namespace parity {

std::filesystem::path beside_program(const std::filesystem::path& built) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = program.parent_path() / built.filename();
  return !error && std::filesystem::exists(beside, error) ? beside : built;
}

}  // namespace parity
