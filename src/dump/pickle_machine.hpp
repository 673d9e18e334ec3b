// The objects a pickle makes, and the machine that makes them. Private to src/dump.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dump/pickle.hpp"

namespace parity::pickle {

enum class Kind : uint8_t { none, boolean, integer, text, other, list, tuple, dict, global, storage, tensor };

struct Object {
  Kind kind = Kind::none;
  int64_t integer = 0;          // integer, boolean; storage: number of elements
  std::string text;             // text; global: "module.name"; storage: its key
  std::vector<uint32_t> items;  // list, tuple; dict: key, value, key, value, …; storage: its type (a global)
  StoredTensor tensor;
};

/// Objects refer to one another by index: cycles leak nothing, and freeing a deep nest does not recurse.
class Machine {
 public:
  Machine(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  /// Executes up to STOP; the result.
  uint32_t run();
  const Object& operator[](uint32_t index) const { return objects_[index]; }
  [[noreturn]] void fail(const std::string& what) const;  // names the byte

 private:
  // Input.
  std::string_view take(uint64_t count);
  uint64_t number(size_t width);  // little-endian
  std::string line();
  int64_t long_integer(uint64_t width);
  // Stack.
  uint32_t make(Kind kind);
  void push(uint32_t index) { stack_.push_back(index); }
  Object& push_new(Kind kind);
  uint32_t pop();
  std::vector<uint32_t> pop_to_mark();
  void push_tuple(size_t count);
  void push_text(std::string_view text);
  void append(const std::vector<uint32_t>& items);
  void set_items(const std::vector<uint32_t>& items);
  void put(uint64_t slot);
  void get(uint64_t slot);
  bool step(uint8_t opcode);      // false at STOP
  bool constant(uint8_t opcode);  // each: was it one of these?
  bool container(uint8_t opcode);
  bool memory(uint8_t opcode);
  // What a state dict calls; pickle_calls.cpp.
  void push_global(const std::string& module, const std::string& name);
  void call();
  void build();
  void persistent();
  uint32_t rebuilt(const std::vector<uint32_t>& arguments, bool named_dtype);
  std::vector<int64_t> sizes(uint32_t index) const;
  int64_t whole(uint32_t index) const;

  std::string_view bytes_;
  std::string where_;
  size_t at_ = 0;
  std::deque<Object> objects_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

}  // namespace parity::pickle
