// The order in which a flush changes what a reader may already see: after each single write the file holds all it held
// before.
//
// HDF5's structures as libver "earliest" writes them (File Format Specification 2.0, III.A to III.D): a group is a
// B-tree of symbol nodes, whose names lie in a local heap. Names go out before the nodes that use them, a B-tree node
// before its children (a child that was split keeps both halves until the parent knows of the other one), object
// headers with the sizes of datasets last.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace parity::probe {

using Block = std::pair<std::uint64_t, std::vector<char>>;  // address, bytes

namespace flush_order {

// A local heap's header: "HEAP" and version, bytes of its data segment, offset of the first free block there, its
// address. A heap whose free blocks do not fit its header is refused as a whole; one without any is read.
constexpr std::size_t kHeapHeader = 32, kFreeBlock = 16, kSegment = 24;
constexpr char kNoFreeBlock[8] = {1};

inline bool begins(const std::vector<char>& data, const char* mark) {
  return data.size() >= 8 && std::memcmp(data.data(), mark, 4) == 0;
}

inline std::uint64_t number(const std::vector<char>& data, std::size_t at) {  // little-endian, as the file is
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(data[at + i]);
  return value;
}

inline std::tuple<int, int, std::uint64_t> turn(const Block& block, const std::set<std::uint64_t>& segments) {
  const auto& [address, data] = block;
  if (address == 0) return {0, 0, address};  // the superblock: how far the file reaches
  const int header = begins(data, "HEAP");
  if (header || segments.count(address) > 0) return {1, header, address};
  if (begins(data, "TREE")) return {2, -static_cast<unsigned char>(data[5]), address};  // from the root down
  return {begins(data, "SNOD") ? 3 : 4, 0, address};
}

}  // namespace flush_order

/// The writes, one after the other, that bring `blocks` (none overlapping) into a file that never uses space again.
/// `read(address, count)` gives what the file holds before.
inline std::vector<Block> in_order(std::vector<Block> blocks,
                                   const std::function<std::vector<char>(std::uint64_t, std::size_t)>& read) {
  using namespace flush_order;
  std::vector<Block> order;
  std::set<std::uint64_t> segments;
  for (const auto& [address, now] : blocks) {
    if (!begins(now, "HEAP")) continue;
    std::vector<char> before = read(address, kHeapHeader);
    segments.insert(number(before, kSegment));
    std::copy(std::begin(kNoFreeBlock), std::end(kNoFreeBlock), before.begin() + kFreeBlock);
    order.emplace_back(address, std::move(before));  // until the new names and then the new header are there
  }
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](const Block& a, const Block& b) { return turn(a, segments) < turn(b, segments); });
  order.insert(order.end(), std::make_move_iterator(blocks.begin()), std::make_move_iterator(blocks.end()));
  return order;
}

}  // namespace parity::probe
