#include "dump/pickle.hpp"

#include "core/error.hpp"
#include "dump/pickle_machine.hpp"

namespace parity::pickle {
namespace {

constexpr int kMostDepth = 100;
constexpr int64_t kMostLeaves = 4'000'000;  // ten lists that each hold the next one ten times would have 10^10

class Flatten {
 public:
  Flatten(const Machine& machine, std::string where) : machine_(machine), where_(std::move(where)) {}

  void visit(uint32_t index, const std::string& name, int depth) {
    const Object& object = machine_[index];
    if (depth > kMostDepth || ++visited_ > kMostLeaves)
      throw Error(where_ + ": nests deeper, or holds more, than any state dict");
    if (object.kind == Kind::tensor)
      contents_.tensors.emplace_back(name, object.tensor);
    else if (object.kind == Kind::dict)
      visit_dict(object, name, depth);
    else if (object.kind == Kind::list || object.kind == Kind::tuple)
      for (size_t i = 0; i < object.items.size(); ++i)
        visit(object.items[i], joined(name, std::to_string(i)), depth + 1);
    else
      ++contents_.others;
  }

  Contents contents() { return std::move(contents_); }

 private:
  static std::string joined(const std::string& name, const std::string& key) {
    return name.empty() ? key : name + "." + key;
  }

  void visit_dict(const Object& dict, const std::string& name, int depth) {
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Object& key = machine_[dict.items[i]];
      if (key.kind != Kind::text && key.kind != Kind::integer)
        throw Error(where_ + ": a dict whose keys are neither strings nor integers does not name tensors");
      visit(dict.items[i + 1], joined(name, key.kind == Kind::text ? key.text : std::to_string(key.integer)),
            depth + 1);
    }
  }

  const Machine& machine_;
  std::string where_;
  Contents contents_;
  int64_t visited_ = 0;
};

}  // namespace

Contents read(std::string_view bytes, const std::string& where) {
  Machine machine(bytes, where);
  const uint32_t root = machine.run();
  Flatten flatten(machine, where);
  flatten.visit(root, machine[root].kind == Kind::tensor ? "tensor" : "", 0);
  return flatten.contents();
}

}  // namespace parity::pickle
