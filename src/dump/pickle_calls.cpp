// The globals that torch.save writes for a state dict (PyTorch's torch/_utils.py, torch/_tensor.py), each as data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/pickle_machine.hpp"

namespace parity::pickle {
namespace {

struct StorageRow {
  std::string_view type;
  at::ScalarType dtype;
};

constexpr std::array kStorages{
    StorageRow{"torch.DoubleStorage", at::kDouble},
    StorageRow{"torch.FloatStorage", at::kFloat},
    StorageRow{"torch.HalfStorage", at::kHalf},
    StorageRow{"torch.BFloat16Storage", at::kBFloat16},
    StorageRow{"torch.LongStorage", at::kLong},
    StorageRow{"torch.IntStorage", at::kInt},
    StorageRow{"torch.ShortStorage", at::kShort},
    StorageRow{"torch.CharStorage", at::kChar},
    StorageRow{"torch.ByteStorage", at::kByte},
    StorageRow{"torch.BoolStorage", at::kBool},
    StorageRow{"torch.ComplexFloatStorage", at::kComplexFloat},
    StorageRow{"torch.ComplexDoubleStorage", at::kComplexDouble},
    StorageRow{"torch.storage.UntypedStorage", at::kByte},  // its number of elements counts bytes
};

constexpr std::array<std::string_view, 8> kCalls{
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch.Size",
    "torch.device",
    "_codecs.encode",
};

const StorageRow* storage_row(std::string_view type) {
  for (const StorageRow& row : kStorages)
    if (row.type == type) return &row;
  return nullptr;
}

// "torch.bfloat16", by its full name only.
std::optional<at::ScalarType> named_dtype(std::string_view global) {
  constexpr std::string_view kTorch = "torch.";
  if (!global.starts_with(kTorch)) return std::nullopt;
  try {
    const at::ScalarType dtype = parse_dtype(global.substr(kTorch.size()));
    return dtype_name(dtype) == global.substr(kTorch.size()) ? std::optional(dtype) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Do all elements lie in the storage? Overlapping ones (expanded tensors) may; but a few bytes must not become
// terabytes.
bool fits(const StoredTensor& t, int64_t item) {
  const int64_t elements = t.storage_bytes / item;
  int64_t last = t.offset, count = 1;
  bool good = t.shape.size() == t.strides.size() && t.shape.size() <= 64 && t.offset >= 0 && t.storage_bytes >= 0;
  for (size_t axis = 0; good && axis < t.shape.size(); ++axis) {
    int64_t reach = 0;
    good = t.shape[axis] >= 0 && t.strides[axis] >= 0 &&
           !__builtin_mul_overflow(count, std::max<int64_t>(t.shape[axis], 1), &count) &&
           !__builtin_mul_overflow(std::max<int64_t>(t.shape[axis] - 1, 0), t.strides[axis], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!good) return false;
  if (std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end()) return t.offset <= elements;
  return last < elements && count / 1024 <= elements;
}

}  // namespace

void Machine::push_global(const std::string& module, const std::string& name) {
  const std::string full = module + "." + name;
  const bool known = std::find(kCalls.begin(), kCalls.end(), full) != kCalls.end() || storage_row(full) != nullptr ||
                     named_dtype(full);
  if (!known)
    fail(
        fmt::format("refers to '{}', which is not part of a state dict of tensors and is never called; save "
                    "model.state_dict() alone, or as .safetensors",
                    full));
  push_new(Kind::global).text = full;
}

int64_t Machine::whole(uint32_t index) const {
  if (objects_[index].kind != Kind::integer) fail("a tensor's size, stride or offset is not an integer");
  return objects_[index].integer;
}

std::vector<int64_t> Machine::sizes(uint32_t index) const {
  const Object& found = objects_[index];
  if (found.kind != Kind::tuple && found.kind != Kind::list) fail("a tensor's shape or strides are not a tuple");
  std::vector<int64_t> numbers;
  for (const uint32_t item : found.items) numbers.push_back(whole(item));
  return numbers;
}

// (storage, offset, shape, strides, requires_grad, hooks[, dtype][, metadata])
uint32_t Machine::rebuilt(const std::vector<uint32_t>& arguments, bool with_dtype) {
  if (arguments.size() < (with_dtype ? 7U : 4U) || objects_[arguments[0]].kind != Kind::storage)
    fail("a tensor without a storage");
  const Object storage = objects_[arguments[0]];
  StoredTensor tensor;
  tensor.dtype = storage_row(objects_[storage.items[0]].text)->dtype;
  if (__builtin_mul_overflow(storage.integer, static_cast<int64_t>(at::elementSize(tensor.dtype)),
                             &tensor.storage_bytes))
    fail("a storage of impossible size");
  if (with_dtype) {
    const auto named = named_dtype(objects_[arguments[6]].text);
    if (!named) fail("a tensor of a dtype that is not known");
    tensor.dtype = *named;
  }
  tensor.storage = storage.text;
  tensor.offset = whole(arguments[1]), tensor.shape = sizes(arguments[2]), tensor.strides = sizes(arguments[3]);
  if (!fits(tensor, static_cast<int64_t>(at::elementSize(tensor.dtype))))
    fail(fmt::format("a tensor of shape [{}], strides [{}], offset {} does not lie in its storage of {} bytes",
                     fmt::join(tensor.shape, ", "), fmt::join(tensor.strides, ", "), tensor.offset,
                     tensor.storage_bytes));
  const uint32_t made = make(Kind::tensor);
  objects_[made].tensor = std::move(tensor);
  return made;
}

void Machine::call() {
  const uint32_t arguments_index = pop(), function_index = pop();
  if (objects_[function_index].kind != Kind::global || objects_[arguments_index].kind != Kind::tuple)
    fail("calls something that is not a function");
  const std::string function = objects_[function_index].text;
  const std::vector<uint32_t> arguments = objects_[arguments_index].items;
  if (function == "torch._utils._rebuild_tensor_v2" || function == "torch._utils._rebuild_tensor")
    return push(rebuilt(arguments, false));
  if (function == "torch._utils._rebuild_tensor_v3") return push(rebuilt(arguments, true));
  if (function == "torch._utils._rebuild_parameter") {  // (tensor, requires_grad, hooks)
    if (arguments.empty() || objects_[arguments[0]].kind != Kind::tensor) fail("a parameter without a tensor");
    return push(arguments[0]);
  }
  if (function == "collections.OrderedDict") {
    if (!arguments.empty()) fail("an OrderedDict made from a list, which torch.save does not write");
    push_new(Kind::dict);
  } else if (function == "torch.Size" || function == "torch.device" || function == "_codecs.encode") {
    push_new(Kind::other);
  } else {
    fail(fmt::format("calls '{}', which a state dict does not", function));
  }
}

// An OrderedDict's attributes (`_metadata`: versions of modules) are the only state that a state dict has.
void Machine::build() {
  pop();
  const uint32_t target = pop();
  if (objects_[target].kind != Kind::dict) fail("gives attributes to something that is not an OrderedDict");
  push(target);
}

// ('storage', type, key, device, number of elements)
void Machine::persistent() {
  const std::vector<uint32_t> id = objects_[pop()].items;
  const bool good = id.size() == 5 && objects_[id[0]].text == "storage" && objects_[id[1]].kind == Kind::global &&
                    storage_row(objects_[id[1]].text) != nullptr && objects_[id[2]].kind == Kind::text &&
                    objects_[id[4]].kind == Kind::integer && objects_[id[4]].integer >= 0;
  if (!good) fail("a storage that is described in no known way");
  Object& storage = push_new(Kind::storage);
  storage.text = objects_[id[2]].text, storage.integer = objects_[id[4]].integer, storage.items = {id[1]};
}

}  // namespace parity::pickle
