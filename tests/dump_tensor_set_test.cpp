// Files of tensors that are not recordings: what numpy and torch wrote (tests/data/tensor_sets.py), whole, cut and
// flipped, and pickles made by hand. Bits are compared in Python: tests/python/test_tensor_sets.py.
#include "dump/tensor_set.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <random>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/pickle.hpp"
#include "dump/zip_file.hpp"
#include "recording_file.hpp"
#include "test_places.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

using TensorsByName = std::map<std::string, at::Tensor>;

const std::filesystem::path kData = std::filesystem::path(PARITY_SOURCE_DIR) / "tests" / "data";

// Everything in it; nullopt and the message when it is refused. Any other exception fails the test.
std::optional<TensorsByName> read_all(const std::filesystem::path& file, std::string* message = nullptr) {
  try {
    const auto set = TensorSet::open(file);
    TensorsByName values;
    for (const std::string& name : set->names()) values[name] = set->value(name).clone();
    return values;
  } catch (const Error& error) {
    if (message) *message = error.what();
    return std::nullopt;
  }
}

bool same_values(const TensorsByName& a, const TensorsByName& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a)
    if (!b.contains(name) || !same_bits(value.contiguous(), b.at(name).contiguous())) return false;
  return true;
}

bool same_names(const TensorsByName& a, const TensorsByName& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

std::string pickled(const std::string& body) {
  try {
    const auto contents = pickle::read("\x80\x02" + body + ".", "x.pt");
    return fmt::format("{} tensors, {} others", contents.tensors.size(), contents.others);
  } catch (const Error& error) {
    CHECK(std::string(error.what()).starts_with("x.pt: "));
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
}

// `count` opcodes of a 4-byte little-endian argument etc. are written out where they are used.
std::string text(const std::string& value) { return "X" + std::string{char(value.size()), 0, 0, 0} + value; }

std::string tensor(const std::string& offset, const std::string& shape, const std::string& strides,
                   const std::string& elements) {
  const std::string storage =
      "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + elements + "tQ";
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + shape + strides + "\x89Nt" + "R";
}

}  // namespace

TEST_CASE("dump: tensors that torch and numpy saved") {
  const at::Tensor a = at::arange(12, at::kFloat).view({3, 4}) / 8;
  const auto pt = TensorSet::open(kData / "tensors.pt");
  CHECK(pt->names() == std::vector<std::string>{"model.weight", "model.bias", "model.running_mean", "model.running_var",
                                                "model.num_batches_tracked", "a.t", "half", "steps.1"});
  CHECK(pt->value("a.t").strides().vec() == std::vector<int64_t>{1, 4});
  CHECK(same_bits(pt->value("a.t").contiguous(), a.t().contiguous()));
  CHECK(same_bits(pt->value("half"), a[0].to(at::kBFloat16)));
  CHECK(dtype_name(pt->type("steps.1").first) == "bool");
  CHECK(pt->notes().size() == 1);  // the 3
  CHECK_THROWS_AS(pt->value("steps.0"), Error);
  const auto npz = TensorSet::open(kData / "tensors.npz");
  CHECK(npz->names() == std::vector<std::string>{"stored", "deflated"});
  CHECK(same_bits(npz->value("stored"), a));
  CHECK(same_bits(npz->value("deflated"), at::zeros({40, 50}, at::kShort)));
  const auto npy = TensorSet::open(kData / "tensors.npy");
  CHECK(npy->value("tensors").strides().vec() == std::vector<int64_t>{1, 3});  // Fortran order
  CHECK(same_bits(npy->value("tensors").contiguous(), a));
}

TEST_CASE("dump: a value does not see what is written to another of the same storage") {
  const auto pt = TensorSet::open(kData / "tensors.pt");
  const at::Tensor before = pt->value("a.t").clone();
  pt->value("a.t").zero_();
  CHECK(same_bits(pt->value("a.t"), before));
}

TEST_CASE("dump: a file of tensors cut anywhere is refused") {
  for (const char* name : {"tensors.pt", "tensors.npz", "tensors.npy"}) {
    const std::string whole = bytes_of(kData / name);
    const TemporaryFile cut(std::string("cut-") + name);
    for (size_t size = 0; size < whole.size(); size += name[8] == 'n' ? 1 : 7) {
      std::ofstream(cut.path(), std::ios::binary) << whole.substr(0, size);
      CAPTURE(name);
      CAPTURE(size);
      std::string message;
      CHECK_FALSE(read_all(cut.path(), &message).has_value());
      CHECK(contains(message, cut.path().string()));
      CHECK_FALSE(contains(message, "\n"));
    }
  }
}

TEST_CASE("dump: flipped bytes are an error or change nothing unseen, never a crash") {
  for (const char* name : {"tensors.pt", "tensors.npz", "tensors.npy"}) {
    const std::string whole = bytes_of(kData / name);
    const TensorsByName right = *read_all(kData / name);
    const TemporaryFile damaged(std::string("flip-") + name);
    int refused = 0, unseen = 0;
    for (size_t at = 0; at < whole.size(); at += name[8] == 'p' ? 3 : 1)
      for (const int mask : {0x01, 0x80, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ mask);
        std::ofstream(damaged.path(), std::ios::binary) << bytes;
        const auto found = read_all(damaged.path());
        refused += !found;
        // Names in an archive are under no checksum; an .npy has none at all.
        if (found && same_names(*found, right) && !same_values(*found, right)) ++unseen;
      }
    CAPTURE(name);
    CHECK(refused > 100);
    if (name != std::string("tensors.npy")) CHECK(unseen == 0);
  }
}

TEST_CASE("dump: pickles flipped, cut or random are an error or a state dict") {
  const ZipFile zip(kData / "tensors.pt");
  const size_t entry = *zip.find("tensors/data.pkl");
  std::string whole(zip.entries()[entry].size, '\0');
  zip.read(entry, whole.data());
  const auto attempt = [](const std::string& bytes) {
    try {
      pickle::read(bytes, "x");
    } catch (const Error&) {
      return 1;
    }
    return 0;
  };
  CHECK(attempt(whole) == 0);
  for (size_t size = 0; size < whole.size(); ++size) CHECK(attempt(whole.substr(0, size)) == 1);
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    refused += attempt(bytes);
  }
  CHECK(refused > 10000);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 60, '\0');
    const std::string opcodes = "}])(tNKMJXUCBaesuqrhj0cRbQ.\x80\x85\x86\x87\x88\x89\x8a\x8c\x93\x94\x95";
    for (char& byte : bytes) byte = random() % 3 ? opcodes[random() % opcodes.size()] : static_cast<char>(random() % 5);
    attempt(bytes);
  }
}

TEST_CASE("dump: a pickle never calls anything, whatever it names") {
  CHECK(contains(pickled("cos\nsystem\n(" + text("touch /tmp/x") + "tR"), "refers to 'os.system'"));
  CHECK(contains(pickled(text("os") + text("system") + "\x93"), "refers to 'os.system'"));
  CHECK(contains(pickled("cbuiltins\neval\n0N"), "refers to 'builtins.eval'"));  // even when the result is dropped
  CHECK(contains(pickled("ctorch._utils\n_rebuild_tensor_v4\n"), "'torch._utils._rebuild_tensor_v4'"));
  CHECK(contains(pickled("ctorch\nFloatStorage\n)R"), "calls 'torch.FloatStorage'"));
  CHECK(contains(pickled("ctorch\nfloat32\n)\x81"), "opcode 0x81"));
  CHECK(contains(pickled("i"), "opcode 0x69"));
  CHECK(contains(pickled(text("os.system") + ")R"), "calls something that is not a function"));
}

TEST_CASE("dump: pickles that take much for little are refused") {
  const std::string one("K\x01", 2), two("K\x02", 2), none(")", 1);
  CHECK(pickled(tensor(std::string("K\0", 2), one + "\x85", one + "\x85", one)) == "1 tensors, 0 others");
  CHECK(
      contains(pickled(tensor(std::string("K\0", 2), two + "\x85", one + "\x85", one)), "does not lie in its storage"));
  CHECK(contains(pickled(tensor(one, one + "\x85", one + "\x85", one)), "does not lie in its storage"));
  const std::string huge("J\xff\xff\xff\x7f", 5), zero("K\0", 2), minus("J\xff\xff\xff\xff", 5);
  CHECK(contains(pickled(tensor(zero, huge + "\x85", zero + "\x85", one)), "does not lie in"));  // expanded
  CHECK(contains(pickled(tensor(zero, huge + huge + huge + "\x87", zero + zero + zero + "\x87", one)),
                 "does not lie in"));
  CHECK(contains(pickled(tensor(zero, one + "\x85", minus + "\x85", one)), "does not lie in"));
  CHECK(contains(pickled(tensor(zero, minus + "\x85", one + "\x85", one)), "does not lie in"));
  CHECK(contains(pickled(tensor(minus, one + "\x85", one + "\x85", one)), "does not lie in"));
  CHECK(contains(pickled("X\xff\xff\xff\xff"), "truncated"));
  CHECK(contains(pickled("h\x07"), "memo 7"));
  CHECK(contains(pickled("0"), "empty stack"));
  CHECK(contains(pickled("(0"), "empty stack"));  // not below a mark
  CHECK(contains(pickled("t"), "no mark"));
  CHECK(contains(pickled("]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a"),
                 "nests deeper"));  // holds itself
  std::string nest = ")", laughs = "]";
  for (int i = 0; i < 200'000; ++i) nest += "\x85";
  CHECK(contains(pickled(nest), "nests deeper"));
  for (char level = 0; level < 12; ++level)
    laughs += std::string("q") + level + "0](h" + level + std::string("h") + level + "h" + level + "h" + level + "h" +
              level + "e";
  CHECK(contains(pickled(laughs), "holds more"));
  CHECK(contains(pickled(std::string(4'100'000, 'N')), "more objects"));
}
