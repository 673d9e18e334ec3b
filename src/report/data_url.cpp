#include "report/data_url.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace parity {
namespace {

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace

std::string data_url(const std::filesystem::path& file, const char* type) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return "";
  return fmt::format("data:{};base64,{}", type, base64({std::istreambuf_iterator<char>(stream), {}}));
}

}  // namespace parity
