// A few bytes that claim gigabytes, in every format: one line that names the file and the entry, before the memory is
// taken.
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/memory.hpp"
#include "recording_file.hpp"
#include "test_places.hpp"
#include "zip_writer.hpp"

using namespace parity::test;
using parity::testing::contains;

namespace {

constexpr uint32_t kClaimed = 0xF0000000;  // bytes
// Deflate makes at most 1032 bytes of one: with fewer than these the claim alone is refused.
constexpr size_t kEnough = 4 << 20;
#if defined(__SANITIZE_ADDRESS__)  // has terabytes of addresses: no limit can be set
const std::string kLimit;
#else
const std::string kLimit = "ulimit -v 4000000; ";  // kB
#endif

// A stream of deflate that begins with `text`, and is damaged after 128 KiB.
std::string deflated(std::string text) {
  text.resize(2 * 65535, '\0');
  std::string stream;
  for (size_t at = 0; at < text.size(); at += 65535)
    stream += '\0' + little<uint16_t>(65535) + little<uint16_t>(0) + text.substr(at, 65535);
  return stream + std::string(kEnough, '\0');
}

// 128 bytes.
std::string npy_header(uint64_t elements) {
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
  dict.resize(117, ' ');
  return "\x93NUMPY\x01" + std::string(1, '\0') + little<uint16_t>(118) + dict + "\n";
}

std::string pickled_text(const std::string& value) { return "X" + little(static_cast<uint32_t>(value.size())) + value; }

// {'a': a float tensor of one row}
std::string state_dict(uint32_t elements) {
  const std::string number = "J" + little(elements);
  return "\x80\x02}" + pickled_text("a") + "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") +
         "ctorch\nFloatStorage\n" + pickled_text("0") + pickled_text("cpu") + number + "tQK" + std::string(1, '\0') +
         "(" + number + "t(K\x01t\x89NtRs.";
}

void check_size_refused(const std::string& command, const std::filesystem::path& file, const std::string& entry,
                        const std::string& why) {
  CAPTURE(command);
  const std::string name = "'" + file.string() + "'";
  const Finished done = shell(kLimit + PARITY_CHECK_BINARY " " + command + " " + name +
                              (command == "inspect --verify" ? "" : " " + name));
  INFO(done.err);
  CHECK(done.status == 2);
  CHECK(lines(done.err) == 1);
  CHECK(done.err.starts_with("parity-check: " + file.string() + ": "));
  // Without a limit a large machine has the memory, reads, and finds the damage.
  CHECK((contains(done.err, entry) || (kLimit.empty() && contains(done.err, "entry 'a.npy' is damaged"))));
  if (!kLimit.empty()) CHECK(contains(done.err, why));
  CHECK_FALSE(contains(done.err, "Allocator"));
  CHECK(done.out.empty());
}

void check_set_refused(const std::filesystem::path& file, const std::string& entry, const std::string& why) {
  for (const std::string command : {"inspect --verify", "compare", "weights"})
    check_size_refused(command, file, entry, why);
}

void write_hostile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// /values/0: floats in chunks of 256 MiB that claim to be deflated.
void add_compressed(hid_t file) {
  const hsize_t size = kClaimed / 4, chunk = 1 << 26;
  const hid_t space = H5Screate_simple(1, &size, nullptr), create = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(create, 1, &chunk);
  H5Pset_deflate(create, 9);
  const hid_t data = H5Dcreate2(file, "values/0", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
  const std::string filler(size_t{300} << 10, '\0');
  for (hsize_t begin = 0; begin < size; begin += chunk)
    H5Dwrite_chunk(data, H5P_DEFAULT, 0, &begin, filler.size(), filler.data());
  const hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
  H5Tset_size(text, 7);
  const hid_t attribute = H5Acreate2(data, "dtype", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, text, "float32");
  for (const hid_t id : {attribute}) H5Aclose(id);
  for (const hid_t id : {scalar, space}) H5Sclose(id);
  H5Tclose(text);
  H5Pclose(create);
  H5Dclose(data);
}

}  // namespace

TEST_CASE("hostile sizes: .npz, an entry that says more than is there, and one that would unpack to it") {
  const Scratch scratch;
  const uint64_t elements = (kClaimed - 128) / 4;
  const auto tiny = scratch / "tiny.npz", bomb = scratch / "bomb.npz", beyond = scratch / "beyond.npz";
  write_zip(tiny, {{"a.npy", npy_header(elements) + "1234", false, 132}});
  check_set_refused(tiny, "entry 'a.npy'", "the header makes");
  write_zip(beyond, {{"a.npy", npy_header(elements) + "1234", true, kClaimed}});
  check_set_refused(beyond, "entry 'a.npy'", "declares");
  write_zip(bomb, {{"a.npy", deflated(npy_header(elements)), true, kClaimed}});
  check_set_refused(bomb, "tensor 'a'", "bytes in memory");
}

TEST_CASE("hostile sizes: .npy and .safetensors") {
  const Scratch scratch;
  const auto npy = scratch / "a.npy", safe = scratch / "a.safetensors", zero = scratch / "zero.safetensors";
  write_hostile(npy, npy_header(kClaimed) + "1234");
  check_set_refused(npy, "", "the header makes");
  const auto safetensors = [](const std::string& shape, const std::string& end) {
    const std::string header = R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,)" + end + "]}}";
    return little<uint64_t>(header.size()) + header;
  };
  write_hostile(safe, safetensors("[2147483648]", "8589934592") + "1234");
  check_set_refused(safe, "tensor 'a'", "lie outside the 4 bytes");
  write_hostile(zero, safetensors("[0,4611686018427387904,4611686018427387904]", "0"));
  check_set_refused(zero, "tensor 'a'", "do not make the 0 bytes");
}

TEST_CASE("hostile sizes: .pt, a storage that is not there, and one that would unpack to it") {
  const Scratch scratch;
  const auto tiny = scratch / "tiny.pt", bomb = scratch / "bomb.pt";
  const std::string pickle = state_dict(kClaimed / 4);
  const ZipEntry dict{"m/data.pkl", pickle, false, static_cast<uint32_t>(pickle.size())};
  write_zip(tiny, {dict, {"m/data/0", "1234", false, 4}});
  check_set_refused(tiny, "tensor 'a'", "the pickle says");
  write_zip(bomb, {dict, {"m/data/0", deflated(""), true, kClaimed}});
  check_set_refused(bomb, "tensor 'a'", "bytes in memory");
}

TEST_CASE("hostile sizes: a dataset of a recording that is not there, and one that would unpack to it") {
  const Scratch scratch;
  for (const bool compressed : {false, true}) {
    CAPTURE(compressed);
    const auto file = scratch / (compressed ? "bomb.h5" : "tiny.h5");
    parity::testing::RecordingFile recording(file);
    if (compressed)
      add_compressed(recording.id());
    else
      recording.raw("0", H5T_IEEE_F32LE, {kClaimed / 4}, nullptr, "float32");
    recording.event({{"e", "point"},
                     {"v", 0},
                     {"d", "float32"},
                     {"s", {kClaimed / 4}},
                     {"k", "0"},
                     {"path", "a"},
                     {"call", 0},
                     {"role", "output"}});
    recording.close();
    check_size_refused("compare", file, "dataset '/values/0'", compressed ? "bytes in memory" : "are stored");
  }
}

TEST_CASE("free memory is what the system says, within this process's own limit") {
  CHECK(parity::free_memory() > 1 << 20);
  CHECK(parity::free_memory() < uint64_t{1} << 50);
}
