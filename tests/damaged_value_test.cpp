// A stored value that is damaged ends a comparison with one line that names it; it is not a verdict.
#include <doctest/doctest.h>

#include "command.hpp"
#include "dump/dump.hpp"
#include "recording_file.hpp"
#include "test_places.hpp"

using namespace parity::test;
using parity::testing::contains;

namespace {

const std::filesystem::path kDataFolder = std::filesystem::path(PARITY_SOURCE_DIR) / "tests" / "data";

// Changes a file through HDF5 alone.
void change_bytes(const std::filesystem::path& file, const std::function<void(hid_t file)>& how) {
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(id >= 0);
  how(id);
  H5Fclose(id);
}

// /values/<key> as a new dataset of that type and shape; no data is written to it.
void replace(hid_t file, const std::string& key, hid_t type, const std::vector<hsize_t>& shape, bool fill) {
  H5Ldelete(file, ("values/" + key).c_str(), H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t data = H5Dcreate2(file, ("values/" + key).c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const std::vector<float> zeros(static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
  if (fill) H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
  const hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
  H5Tset_size(text, 7);
  const hid_t attribute = H5Acreate2(data, "dtype", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, text, "float32");
  H5Aclose(attribute);
  H5Sclose(scalar);
  H5Tclose(text);
  H5Dclose(data);
  H5Sclose(space);
}

struct Damage {
  const char* expected;
  std::function<void(hid_t, const std::string& key)> how;
};

const std::vector<Damage> kDamages{
    {"is missing", [](hid_t f, const std::string& key) { H5Ldelete(f, ("values/" + key).c_str(), H5P_DEFAULT); }},
    {"are stored",
     [](hid_t f, const std::string& key) {
       replace(f, key, H5T_IEEE_F32LE, {2, 3}, false);
     }},
    {"32-bit integers",
     [](hid_t f, const std::string& key) {
       replace(f, key, H5T_STD_I32LE, {2, 3}, true);
     }},
    {"the program says", [](hid_t f, const std::string& key) {
       replace(f, key, H5T_IEEE_F32LE, {2, 3}, true);
     }}};

// `bad` is one of the two.
void check_refused(const std::filesystem::path& reference, const std::filesystem::path& candidate,
                   const std::filesystem::path& bad, const std::string& what, const std::string& expected) {
  const Finished done = parity_check("compare '" + reference.string() + "' '" + candidate.string() + "'");
  INFO(done.out << done.err);
  CHECK(done.status == 2);
  CHECK(lines(done.err) == 1);
  CHECK(done.err.starts_with("parity-check: " + bad.string() + ": "));
  CHECK(contains(done.err, what));
  CHECK(contains(done.err, expected));
  CHECK(done.out.empty());
}

}  // namespace

TEST_CASE("compare: a damaged value of either recording is not a verdict") {
  const Scratch scratch;
  const auto bad = scratch / "bad.h5";
  const parity::Dump dump(kDataFolder / "gpt2.h5");
  std::string key;  // of the first module's result
  for (const auto& event : dump.events())
    if (event["e"] == "ret" && !event["outputs"].empty() && key.empty()) key = event["outputs"][0]["k"];
  REQUIRE_FALSE(key.empty());
  for (const Damage& damage : kDamages) {
    CAPTURE(damage.expected);
    std::filesystem::copy_file(kDataFolder / "gpt2.h5", bad, std::filesystem::copy_options::overwrite_existing);
    change_bytes(bad, [&](hid_t file) { damage.how(file, key); });
    check_refused(kDataFolder / "gpt2.h5", bad, bad, "/values/" + key, damage.expected);
    check_refused(bad, kDataFolder / "gpt2.h5", bad, "/values/" + key, damage.expected);
  }
}

TEST_CASE("compare: a damaged tensor of a set, compared without a program, is not a verdict") {
  const Scratch scratch;
  std::string suffix = ".npz", what = "entry '", expected = "is damaged";
  size_t at = std::string::npos;  // of the byte that changes
  const std::string npz = read_text(kDataFolder / "tensors.npz"), pt = read_text(kDataFolder / "tensors.pt");
  SUBCASE(".npz, stored: the last number, its checksum fails") {
    at = npz.find("PK\x03\x04", 4) - 1;
    what = "entry 'stored.npy'";
  }
  SUBCASE(".npz, deflated: near the end of the stream") {
    at = npz.find("PK\x01\x02") - 8;
    what = "entry 'deflated.npy'";
  }
  SUBCASE(".pt: the last number of a storage, its checksum fails") {
    at = pt.find("tensors/data/6") - 30 - 16 - 1;  // a local header has 30 bytes, the data descriptor before it 16
    suffix = ".pt", what = "tensor 'a.t'";
  }
  SUBCASE(".safetensors: a bool that is neither 0 nor 1") {
    suffix = ".safetensors", what = "tensor 'a'", expected = "values other than 0 and 1";
  }
  std::string bytes = suffix == ".pt" ? pt : npz;
  if (suffix == ".safetensors") {
    const std::string header = R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})";
    bytes = std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + std::string(4, '\1');
    at = bytes.size() - 1;
  }
  REQUIRE(at < bytes.size());
  const auto good = scratch / ("good" + suffix), bad = scratch / ("bad" + suffix);
  std::ofstream(good, std::ios::binary) << bytes;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  std::ofstream(bad, std::ios::binary) << bytes;
  REQUIRE(parity_check("compare '" + good.string() + "' '" + good.string() + "'").status != 2);
  check_refused(good, bad, bad, what, expected);
  check_refused(bad, good, bad, what, expected);
}

TEST_CASE("compare: a damaged whole tensor in a recording of sketches is not a verdict") {
  const Scratch scratch;
  const auto good = scratch / "good.h5", bad = scratch / "bad.h5";
  for (const auto& path : {good, bad}) {
    parity::testing::RecordingFile file(path);
    file.attribute("level", "sketch");
    const at::Tensor x = at::arange(6, at::kFloat).view({3, 2});
    file.value("0", x);
    nlohmann::json event = parity::testing::value_json(0, x, "0");
    event.update({{"e", "point"}, {"path", "a"}, {"call", 0}, {"role", "output"}});
    file.event(event);
    file.close();
  }
  REQUIRE(parity_check("compare " + good.string() + " " + bad.string()).status == 0);
  for (const Damage& damage : kDamages) {
    CAPTURE(damage.expected);
    const auto copy = scratch / "damaged.h5";
    std::filesystem::copy_file(bad, copy, std::filesystem::copy_options::overwrite_existing);
    change_bytes(copy, [&](hid_t file) { damage.how(file, "0"); });
    check_refused(good, copy, copy, "/values/0", damage.expected);
  }
}
