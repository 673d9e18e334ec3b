// Polygraphy's RunResults as JSON (0.53, comparator/struct.py, json/serde.py): a list of [runner, iterations], each
// array a whole .npy file in base64. An iteration is a call.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "dump/allocate.hpp"
#include "dump/npy.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> digit_values() {
  std::array<int8_t, 256> out{};
  for (int8_t& value : out) value = -1;
  for (size_t i = 0; i < kDigits.size(); ++i) out[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  return out;
}

/// RFC 4648, 4, without line breaks, as Python's b64encode writes it. Throws Error beginning with `where`.
std::string from_base64(std::string_view text, const std::string& where) {
  static constexpr auto kValues = digit_values();
  const size_t padding = text.size() - std::min(text.size(), text.find_last_not_of('=') + 1);
  if (text.size() % 4 != 0 || padding > 2) throw Error(where + " is not base64; is the file whole?");
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int8_t value = i < text.size() - padding ? kValues[static_cast<unsigned char>(text[i])] : int8_t{0};
    if (value < 0) throw Error(where + " is not base64; is the file whole?");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

class RunResultsSet final : public TensorSet {
 public:
  RunResultsSet(const std::filesystem::path& file, const OrderedJson& document) : TensorSet(file) {
    const OrderedJson& runners = document.at("lst");
    if (runners.size() != 1)
      throw Error(fmt::format("{}: holds the results of {} runners ({}); a side is one: save each to a file of its own",
                              file.string(), runners.size(), names_of(runners)));
    int call = 0;
    for (const OrderedJson& iteration : runners.at(0).at(1)) {
      for (const auto& [name, array] : iteration.at("outputs").items()) add_array(name, call, array);
      ++call;
    }
  }

 private:
  static std::string names_of(const OrderedJson& runners) {
    std::string out;
    for (const OrderedJson& runner : runners) out += (out.empty() ? "" : ", ") + plain(runner.at(0).get<std::string>());
    return out;
  }

  void add_array(const std::string& name, int call, const OrderedJson& lazy) {
    const OrderedJson& array = lazy.contains("values") ? lazy["values"] : lazy;
    const std::string what = fmt::format("{}: output '{}'", file().string(), plain(name));
    if (array.contains("tensor"))
      throw Error(what + " is a torch tensor; give Polygraphy numpy arrays (tensor.numpy()) and save again");
    std::string bytes = from_base64(array.at("array").get_ref<const std::string&>(), what);
    NpyHeader header = parse_npy(std::string_view(bytes).substr(0, kMostNpyHeader), what);
    if (bytes.size() - header.data_begin != header.data_bytes)
      throw Error(fmt::format("{}: its header makes {} bytes of data, {} are there", what, header.data_bytes,
                              bytes.size() - header.data_begin));
    add(name_of_call(name, call), header.dtype, header.shape);
    bytes_.push_back(std::move(bytes));
    headers_.push_back(std::move(header));
  }

  at::Tensor read(size_t index) const override {
    const NpyHeader& header = headers_[index];
    const auto size = static_cast<int64_t>(header.data_bytes);
    const at::Tensor raw = empty_for({size}, at::kByte, where(index));
    std::copy_n(bytes_[index].data() + header.data_begin, header.data_bytes,
                static_cast<char*>(raw.mutable_data_ptr()));
    return header.lay_out(raw);
  }

  std::vector<std::string> bytes_;
  std::vector<NpyHeader> headers_;
};

}  // namespace

std::unique_ptr<TensorSet> open_run_results(const std::filesystem::path& file, const OrderedJson& document) {
  return std::make_unique<RunResultsSet>(file, document);
}

}  // namespace parity
