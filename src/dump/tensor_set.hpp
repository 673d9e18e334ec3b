// Named tensors in a file that is not a recording: .safetensors, .npz, .npy, .pt, a folder of them, or a dump of
// another tool. What a file says about itself is checked against its size before memory is taken for it, and nothing in
// it is ever executed.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parity {

/// Data is read when asked for; names, dtypes and shapes are known once it is open. Not thread-safe.
class TensorSet {
 public:
  /// Is this a folder, or does its suffix say that `open` reads it (.safetensors, .safetensors.index.json, .npz, .npy,
  /// .pt, .pth, .ckpt, .bin, .json)? Does not look inside.
  static bool fits(const std::filesystem::path& place);

  /// A file's names are its own; an .npy's is the file's name without suffix; in .pt the keys of nested dicts and lists
  /// are joined by dots ("model.blocks.0.weight"). A folder with a *.safetensors.index.json is that checkpoint; one
  /// with a single file of these is that file; any other gives each file's relative path without suffix, and after it
  /// ".<name>" where a file holds several ("run/step3.logits"). JSON of transformers' model_addition_debugger, of
  /// Polygraphy's RunResults and of msprobe, or the folder with it: results of calls, "path", "path (call 1)", …
  /// Throws Error, one line: unreadable, truncated, foreign, hostile; big-endian data, Python objects, pickles that are
  /// more than a state dict (naming the opcode or global); nothing in it; two tensors of one name.
  static std::unique_ptr<TensorSet> open(const std::filesystem::path& place);

  virtual ~TensorSet() = default;
  TensorSet(const TensorSet&) = delete;
  TensorSet& operator=(const TensorSet&) = delete;

  const std::filesystem::path& file() const { return file_; }
  const std::vector<std::string>& names() const { return names_; }  // the file's order; safetensors: by name
  bool has(std::string_view name) const { return index_.contains(name); }
  /// Throws Error for an unknown name, as does `value`.
  const std::pair<at::ScalarType, std::vector<int64_t>>& type(std::string_view name) const;
  /// Its dtype and shape are those of `type`; strides as stored (Fortran order, transposed). Throws Error when damaged.
  at::Tensor value(std::string_view name) const;
  /// What a person should know: 2-byte voids taken for bfloat16, values left out because they are not tensors.
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  explicit TensorSet(std::filesystem::path file) : file_(std::move(file)) {}
  /// The next tensor. Throws Error for a name that is taken or is not printable UTF-8.
  void add(const std::string& name, at::ScalarType dtype, std::vector<int64_t> shape);
  void note(std::string_view text) { notes_.emplace_back(text); }
  virtual at::Tensor read(size_t index) const = 0;  // of names()
  std::string where(size_t index) const;            // "model.pt: tensor 'a.weight'"

 private:
  size_t at(std::string_view name) const;

  std::filesystem::path file_;
  std::vector<std::string> names_, notes_;
  std::vector<std::pair<at::ScalarType, std::vector<int64_t>>> types_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace parity
