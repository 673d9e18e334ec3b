#include <fmt/format.h>
#include <openssl/evp.h>

#include <fstream>

#include "core/error.hpp"
#include "dump/dump.hpp"

namespace parity {

namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    good_ = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }

  void add(const void* data, size_t size) { good_ = good_ && EVP_DigestUpdate(context_.get(), data, size) == 1; }

  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (!good_ || EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1)
      throw Error("SHA-256 is not available in OpenSSL here");
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool good_ = false;
};

}  // namespace

std::string sha256_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(fmt::format("{}: cannot be read", file.string()));
  Digest digest;
  std::vector<char> block(1 << 20);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    digest.add(block.data(), static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) throw Error(fmt::format("{}: cannot be read to its end", file.string()));
  return digest.hex();
}

std::string sha256_of_text(std::string_view text) {
  Digest digest;
  digest.add(text.data(), text.size());
  return digest.hex();
}

std::string sha256_of_tensor(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  Digest digest;
  if (dense.nbytes() > 0) digest.add(dense.const_data_ptr(), dense.nbytes());
  return digest.hex();
}

}  // namespace parity
