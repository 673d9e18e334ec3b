// Zip archives byte by byte: sound ones, and ones that lie. Shares no code with src/dump.
#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace parity::test {

template <class T>
std::string little(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Of PKWARE's APPNOTE (the polynomial 0xedb88320): libzip holds against it what is read to its end, as a pickle is.
inline uint32_t checksum(const std::string& data) {
  uint32_t sum = ~uint32_t{0};
  for (const char c : data) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum;
}

struct ZipEntry {
  std::string name, data;
  bool deflated = false;
  uint32_t size = 0;  // as said: uncompressed
};

// As PKWARE's APPNOTE has it. Checksums are those of the bytes as they lie there: right for stored entries; nobody gets
// to the end of the others.
inline void write_zip(const std::filesystem::path& path, const std::vector<ZipEntry>& entries) {
  std::string local, central;
  for (const ZipEntry& e : entries) {
    const std::string common = little<uint16_t>(0) + little<uint16_t>(e.deflated ? 8 : 0) + little<uint32_t>(0x5821) +
                               little(checksum(e.data)) + little(static_cast<uint32_t>(e.data.size())) +
                               little(e.size) + little<uint16_t>(static_cast<uint16_t>(e.name.size())) +
                               little<uint16_t>(0);
    central += "PK\x01\x02" + little<uint16_t>(20) + little<uint16_t>(20) + common + std::string(10, '\0') +
               little<uint32_t>(static_cast<uint32_t>(local.size())) + e.name;
    local += "PK\x03\x04" + little<uint16_t>(20) + common + e.name + e.data;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  std::ofstream(path, std::ios::binary) << local << central << "PK\x05\x06" << little<uint32_t>(0) << little(count)
                                        << little(count) << little<uint32_t>(static_cast<uint32_t>(central.size()))
                                        << little<uint32_t>(static_cast<uint32_t>(local.size())) << little<uint16_t>(0);
}

}  // namespace parity::test
