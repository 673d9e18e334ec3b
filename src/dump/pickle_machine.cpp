// Opcodes after CPython's Lib/pickletools.py, protocols 2 to 5, as far as torch.save uses them.
#include "dump/pickle_machine.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity::pickle {
namespace {

constexpr size_t kMostObjects = 4'000'000;  // 0.9 GB; a state dict of 10 000 tensors makes 0.2 million

}  // namespace

void Machine::fail(const std::string& what) const {
  throw Error(fmt::format("{}: byte {} of the pickle: {}", where_, at_, what));
}

std::string_view Machine::take(uint64_t count) {
  if (count > bytes_.size() - at_) fail("the file is truncated or damaged");
  const std::string_view found = bytes_.substr(at_, count);
  at_ += count;
  return found;
}

uint64_t Machine::number(size_t width) {
  uint64_t value = 0;
  const std::string_view bytes = take(width);
  for (size_t i = 0; i < width; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::string Machine::line() {
  const size_t end = bytes_.substr(0, std::min(bytes_.size(), at_ + 1000)).find('\n', at_);
  if (end == std::string_view::npos) fail("the name of a global does not end");
  std::string text(take(end - at_));
  take(1);
  return text;
}

// Two's complement, any width; a value beyond int64 (a random seed) becomes "other".
int64_t Machine::long_integer(uint64_t width) {
  const std::string_view bytes = take(width);
  if (width > 8) {
    push_new(Kind::other);
    return 0;
  }
  uint64_t value = width > 0 && static_cast<unsigned char>(bytes.back()) >= 0x80 ? UINT64_MAX : 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  push_new(Kind::integer).integer = static_cast<int64_t>(value);
  return 0;
}

uint32_t Machine::make(Kind kind) {
  if (objects_.size() >= kMostObjects) fail("more objects than a state dict has");
  objects_.emplace_back().kind = kind;
  return static_cast<uint32_t>(objects_.size() - 1);
}

Object& Machine::push_new(Kind kind) {
  push(make(kind));
  return objects_.back();
}

uint32_t Machine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("takes from an empty stack");
  const uint32_t top = stack_.back();
  stack_.pop_back();
  return top;
}

std::vector<uint32_t> Machine::pop_to_mark() {
  if (marks_.empty()) fail("has no mark where one is required");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<uint32_t> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

void Machine::push_tuple(size_t count) {
  std::vector<uint32_t> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  push_new(Kind::tuple).items = std::move(items);
}

void Machine::push_text(std::string_view text) { push_new(Kind::text).text = text; }

void Machine::append(const std::vector<uint32_t>& items) {
  const uint32_t target = pop();
  push(target);
  Object& list = objects_[target];
  if (list.kind != Kind::list) fail("appends to something that is not a list");
  list.items.insert(list.items.end(), items.begin(), items.end());
}

void Machine::set_items(const std::vector<uint32_t>& items) {
  const uint32_t target = pop();
  push(target);
  Object& dict = objects_[target];
  if (dict.kind != Kind::dict || items.size() % 2 != 0) fail("sets items of something that is not a dict");
  dict.items.insert(dict.items.end(), items.begin(), items.end());
}

void Machine::put(uint64_t slot) {
  const uint32_t top = pop();
  push(top);
  memo_[slot] = top;
}

void Machine::get(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) fail(fmt::format("memo {} was never written", slot));
  push(found->second);
}

bool Machine::constant(uint8_t opcode) {
  switch (opcode) {
    case 'N':
      return push_new(Kind::none), true;
    case 0x88:
    case 0x89:
      return push_new(Kind::boolean).integer = opcode == 0x88, true;
    case 'K':
      return push_new(Kind::integer).integer = static_cast<int64_t>(number(1)), true;
    case 'M':
      return push_new(Kind::integer).integer = static_cast<int64_t>(number(2)), true;
    case 'J':
      return push_new(Kind::integer).integer = static_cast<int32_t>(number(4)), true;
    case 0x8a:  // LONG1
      return long_integer(number(1)), true;
    case 'G':  // BINFLOAT
      return take(8), push_new(Kind::other), true;
    case 'X':  // BINUNICODE
      return push_text(take(number(4))), true;
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING
      return push_text(take(number(1))), true;
    case 0x8d:  // BINUNICODE8
      return push_text(take(number(8))), true;
    case 'C':  // SHORT_BINBYTES
      return take(number(1)), push_new(Kind::other), true;
    case 'B':  // BINBYTES
      return take(number(4)), push_new(Kind::other), true;
    default:
      return false;
  }
}

bool Machine::container(uint8_t opcode) {
  switch (opcode) {
    case '}':
      return push_new(Kind::dict), true;
    case ']':
      return push_new(Kind::list), true;
    case ')':
      return push_new(Kind::tuple), true;
    case '(':
      return marks_.push_back(stack_.size()), true;
    case 't': {
      std::vector<uint32_t> items = pop_to_mark();
      return push_new(Kind::tuple).items = std::move(items), true;
    }
    case 0x85:
    case 0x86:
    case 0x87:
      return push_tuple(opcode - 0x84), true;
    case 'a':
      return append({pop()}), true;
    case 'e':
      return append(pop_to_mark()), true;
    case 's': {
      const uint32_t value = pop(), key = pop();
      return set_items({key, value}), true;
    }
    case 'u':
      return set_items(pop_to_mark()), true;
    default:
      return false;
  }
}

bool Machine::memory(uint8_t opcode) {
  switch (opcode) {
    case 'q':
      return put(number(1)), true;
    case 'r':
      return put(number(4)), true;
    case 0x94:  // MEMOIZE
      return put(memo_.size()), true;
    case 'h':
      return get(number(1)), true;
    case 'j':
      return get(number(4)), true;
    case '0':
      return pop(), true;
    case 0x80:  // PROTO
      return take(1), true;
    case 0x95:  // FRAME
      return take(8), true;
    default:
      return false;
  }
}

bool Machine::step(uint8_t opcode) {
  if (opcode == '.') return false;
  if (constant(opcode) || container(opcode) || memory(opcode)) return true;
  switch (opcode) {
    case 'c': {
      const std::string module = line();
      push_global(module, line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const std::string name = objects_[pop()].text;
      push_global(objects_[pop()].text, name);
      return true;
    }
    case 'R':
      return call(), true;
    case 'b':
      return build(), true;
    case 'Q':
      return persistent(), true;
    default:
      fail(fmt::format(
          "opcode 0x{:02x} is not one that a state dict of tensors needs; save model.state_dict() alone, or "
          "as .safetensors",
          opcode));
  }
}

uint32_t Machine::run() {
  while (step(static_cast<uint8_t>(number(1)))) {
  }
  return pop();
}

}  // namespace parity::pickle
