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

constexpr std::size_t kHeapHeader = 32, kFreeBlock = 16;  // bytes; the latter say how far a free block reaches

inline bool begins(const std::vector<char>& data, const char* mark) {
  return data.size() >= 8 && std::memcmp(data.data(), mark, 4) == 0;
}

inline std::uint64_t number(const std::vector<char>& data, std::size_t at) {  // little-endian, as the file is
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(data[at + i]);
  return value;
}

/// Address of the free block that an old local heap header names, if the new one fills the same data segment; 0
/// otherwise. The heap is refused as a whole when that block is not whole.
inline std::uint64_t free_block(const std::vector<char>& now, const std::vector<char>& before) {
  if (now.size() != kHeapHeader || !begins(before, "HEAP")) return 0;  // larger: header and names are one write
  const std::uint64_t size = number(before, 8), free = number(before, 16), segment = number(before, 24);
  return free < size && segment == number(now, 24) ? segment + free : 0;
}

inline std::tuple<int, int, std::uint64_t> turn(const Block& block, const std::set<std::uint64_t>& names) {
  const auto& [address, data] = block;
  if (address == 0) return {0, 0, address};  // the superblock: how far the file reaches
  const int has_names = names.count(address) > 0;
  if (begins(data, "HEAP") || has_names) return {1, has_names, address};
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
  std::set<std::uint64_t> names;
  for (const auto& [header, now] : blocks) {
    if (!begins(now, "HEAP")) continue;
    const std::uint64_t free = free_block(now, read(header, kHeapHeader));
    for (const auto& [address, data] : blocks) {
      if (free < address || free + kFreeBlock > address + data.size()) continue;
      names.insert(address);
      order.emplace_back(address, data);  // all but the bytes by which the old header finds its free block
      const std::vector<char> kept = read(free, kFreeBlock);
      std::copy(kept.begin(), kept.end(), order.back().second.begin() + static_cast<std::ptrdiff_t>(free - address));
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](const Block& a, const Block& b) { return turn(a, names) < turn(b, names); });
  order.insert(order.end(), std::make_move_iterator(blocks.begin()), std::make_move_iterator(blocks.end()));
  return order;
}

}  // namespace parity::probe
