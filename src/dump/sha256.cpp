#include <fmt/format.h>
#include <openssl/evp.h>

#include <fstream>

#include "core/error.hpp"
#include "dump/dump.hpp"

namespace parity {

std::string sha256_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(fmt::format("{}: cannot be read", file.string()));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<char> block(1 << 20);
  while (good && in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    good = EVP_DigestUpdate(context.get(), block.data(), static_cast<size_t>(in.gcount())) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (!good || in.bad() || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1)
    throw Error(fmt::format("{}: cannot be read to its end", file.string()));
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace parity
