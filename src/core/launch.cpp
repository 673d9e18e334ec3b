#include "core/launch.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace parity {
namespace {

std::optional<int> number_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

Launch launch() {
  constexpr std::pair<const char*, const char*> kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                                {"PMI_RANK", "PMI_SIZE"},
                                                                {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank_in, size_in] : kLaunchers) {
    const auto rank = number_in(rank_in), size = number_in(size_in);
    if (rank && size && *rank >= 0 && *rank < *size) return {*rank, *size};
  }
  return {};
}

}  // namespace parity
