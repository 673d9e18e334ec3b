// NumPy's array format (numpy.lib.format): magic, version, a Python dict as text, data.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "core/error.hpp"
#include "video/array_file.hpp"

namespace parity {
namespace {

constexpr int64_t kLongestHeader = 1 << 16;

/// The text after `'key':` up to the comma or brace that ends it; parentheses are kept whole.
std::string entry(const std::string& header, const std::string& key, const std::string& where) {
  size_t at = header.find("'" + key + "'");
  if (at != std::string::npos) at = header.find(':', at);
  if (at == std::string::npos) throw Error(fmt::format("{}: its header has no '{}'; is it a .npy file?", where, key));
  const size_t begin = header.find_first_not_of(' ', at + 1);
  const size_t end = begin == std::string::npos ? begin
                     : header[begin] == '('     ? header.find(')', begin)
                                                : header.find_first_of(",}", begin);
  if (end == std::string::npos) throw Error(fmt::format("{}: its header ends early", where));
  return header.substr(begin, end - begin);
}

at::ScalarType dtype_of(const std::string& descr, const std::string& where) {
  for (const auto& [name, dtype] : {std::pair{"'|u1'", at::kByte},
                                    {"'<u2'", at::kUInt16},
                                    {"'<f2'", at::kHalf},
                                    {"'<f4'", at::kFloat},
                                    {"'<f8'", at::kDouble}})
    if (descr == name) return dtype;
  throw Error(
      fmt::format("{}: dtype {} cannot be frames; save uint8, uint16, float16, float32 or float64 in little endian",
                  where, descr.substr(0, 40)));
}

std::vector<int64_t> shape_of(const std::string& text, const std::string& where) {
  std::vector<int64_t> shape;
  const char* p = text.c_str() + 1;
  while (*p) {
    char* end = nullptr;
    const long long value = std::strtoll(p, &end, 10);
    if (end == p) break;
    shape.push_back(value);
    p = end + std::strspn(end, " ,L");
  }
  if (*p || text.empty() || text[0] != '(' || shape.empty() || shape.size() > 6)
    throw Error(fmt::format("{}: shape {} is not that of frames", where, text.substr(0, 60)));
  int64_t count = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      throw Error(fmt::format("{}: shape {}) is impossible", where, text.substr(0, 60)));
  return shape;
}

struct Descriptor {  // closed also when the constructor of its owner throws
  int id;
  ~Descriptor() { ::close(id); }
};

class Npy : public ArrayFile {
 public:
  Npy(int descriptor, int64_t offset, int64_t size, std::string where) : file_{descriptor}, where_(std::move(where)) {
    const std::string header = read_header(offset, size);
    dtype_ = dtype_of(entry(header, "descr", where_), where_);
    shape_ = shape_of(entry(header, "shape", where_), where_);
    if (entry(header, "fortran_order", where_) != "False")
      throw Error(where_ + ": is in Fortran order; save it through numpy.ascontiguousarray");
    int64_t bytes = static_cast<int64_t>(at::elementSize(dtype_));
    for (const int64_t n : shape_)
      if (__builtin_mul_overflow(bytes, n, &bytes)) throw Error(where_ + ": its shape is impossible");
    if (bytes > offset + size - data_)
      throw Error(fmt::format("{}: declares {} bytes of data but holds {}; it is truncated", where_, bytes,
                              offset + size - data_));
  }

  at::ScalarType dtype() const override { return dtype_; }
  const std::vector<int64_t>& shape() const override { return shape_; }

  at::Tensor slice(size_t axis, int64_t index) override {
    std::vector<int64_t> rest = shape_;
    rest.erase(rest.begin() + static_cast<int64_t>(axis));
    at::Tensor out = at::empty(rest, dtype_);
    int64_t outer = 1, inner = static_cast<int64_t>(at::elementSize(dtype_));
    for (size_t i = 0; i < axis; ++i) outer *= shape_[i];
    for (size_t i = axis + 1; i < shape_.size(); ++i) inner *= shape_[i];
    auto* to = static_cast<char*>(out.mutable_data_ptr());
    for (int64_t o = 0; o < outer; ++o) read_at(data_ + (o * shape_[axis] + index) * inner, to + o * inner, inner);
    return out;
  }

 private:
  void read_at(int64_t offset, char* to, int64_t n) const {
    while (n > 0) {
      const ssize_t got = ::pread(file_.id, to, static_cast<size_t>(n), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error(where_ + ": ends early; it is truncated");
      to += got, offset += got, n -= got;
    }
  }

  std::string read_header(int64_t offset, int64_t size) {
    unsigned char start[12] = {};
    if (size < 12) throw Error(where_ + ": is too short for a .npy file");
    read_at(offset, reinterpret_cast<char*>(start), 12);
    if (std::memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3)
      throw Error(where_ + ": is no .npy file of version 1 to 3");
    const int64_t begin = start[6] == 1 ? 10 : 12;
    const int64_t length = start[6] == 1 ? start[8] | start[9] << 8
                                         : start[8] | start[9] << 8 | start[10] << 16 | int64_t{start[11]} << 24;
    if (length > kLongestHeader || begin + length > size) throw Error(where_ + ": its header is damaged");
    std::string header(static_cast<size_t>(length), '\0');
    read_at(offset + begin, header.data(), length);
    data_ = offset + begin + length;
    return header;
  }

  Descriptor file_;
  std::string where_;
  int64_t data_ = 0;  // where the numbers begin
  at::ScalarType dtype_ = at::kByte;
  std::vector<int64_t> shape_;
};

}  // namespace

std::unique_ptr<ArrayFile> npy_in(int descriptor, int64_t offset, int64_t size, const std::string& where) {
  return std::make_unique<Npy>(descriptor, offset, size, where);
}

std::unique_ptr<ArrayFile> open_npy(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    throw Error(fmt::format("{}: cannot be opened ({})", file.string(), std::strerror(errno)));
  return npy_in(descriptor, 0, status.st_size, file.string());
}

}  // namespace parity
