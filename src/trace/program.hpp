// The recorded program in memory: ops, module calls, leaves, boundaries. No tensor data here.
#pragma once
#include <ATen/ATen.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/dump.hpp"

namespace parity {

/// Of each `of` elements along an axis, `length` from `begin` on.
struct AxisPart {
  int64_t axis = 0, of = 0, begin = 0, length = 0;
};

/// Throws c10::Error where the axis is not so many times `of`.
at::Tensor axis_part(const at::Tensor& whole, const AxisPart& part);
at::Tensor axis_parts(at::Tensor whole, const std::vector<AxisPart>& parts);

/// Parts of a tensor, each axis by axis, that lie one behind the other along an axis; -1: each as a row of elements.
struct PackedParts {
  std::vector<std::vector<AxisPart>> parts;
  int64_t axis = 0;
};

/// Parts of a whole as one tensor. Throws c10::Error where they do not fit.
at::Tensor pack(std::vector<at::Tensor> parts, int64_t axis);
/// The parts of this whole.
at::Tensor pack(const at::Tensor& whole, const PackedParts& parts);

/// A value at one moment of the recorded run.
struct Value {
  int64_t id = -1;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::string key;       // where its tensor is stored in the dump; empty: not stored
  bool nested = false;   // a nested tensor: no shape, nothing to compare
  std::string name;      // in module inputs and outputs: its name in the signature or result
  PackedParts packed{};  // of the stored tensor these alone, if there are any

  int64_t elements() const { return c10::multiply_integers(shape); }
};

/// `Op::opaque` of an op that draws random numbers (FORMAT.md).
inline constexpr std::string_view kRandom = "random";
/// `Op::opaque` of an op whose values say how many elements it gives (FORMAT.md).
constexpr std::string_view kDataDependent = "data-dependent";

/// One ATen op as recorded.
struct Op {
  std::string name;             // "aten::add.Tensor"
  std::string kind;             // "add"
  std::string path;             // "blocks.0/add.1"
  int call = 0;                 // how often this path was computed before (the module's call index)
  int module_call = -1;         // index into Program::calls of the innermost running call; -1: outside
  nlohmann::json args, kwargs;  // encoded as in FORMAT.md
  std::vector<std::optional<Value>> outputs;
  std::string opaque;         // non-empty: the reason why replay takes the stored outputs
  bool view = false;          // outputs alias inputs
  std::vector<Value> writes;  // arguments that it writes to and does not return, after the write
  int64_t event = 0;          // its line in /trace/events, from 1
  int line = -1;              // of the user's source that called it, index into Program::lines; -1: not recorded
  int library_line = -1;      // the line inside the library that this went through, where there was one
  std::optional<at::ScalarType> widened_from;  // of the softmax of LibTorch's attention in steps: its operands' dtype
  int64_t stands_for = -1;  // of an op that was put in afterwards: the recorded value that its result stands for
};

/// One call of one module.
struct ModuleCall {
  std::string path;  // "blocks.0.attn1"
  int call = 0;      // how often this path was called before
  int parent = -1;   // index into Program::calls
  std::string type;  // class name
  std::vector<Value> inputs, outputs;
  nlohmann::json literals;  // non-tensor arguments by name
  bool grad = false;        // grad mode was on
  int begin = 0, end = 0;   // ops [begin, end) ran inside, children included
  size_t boundary = 0;      // how many boundaries came before it
};

/// A tensor that no recorded op made.
struct Leaf {
  Value value;
  std::vector<std::string> names;  // "weights/…", "inputs/…"
  bool computed = false;           // a weight in no weights file: another build of the model computes its own
  int position = 0;                // first used by the op or call at this position
  int64_t base = -1;  // it shares the memory of this value: base.as_strided(shape, strides, offset); -1: of none
  std::vector<int64_t> strides;
  int64_t offset = 0;  // elements from the beginning of base's storage

  /// An input of the model whose values are stored.
  bool is_recorded_input() const;
  /// A parameter or a buffer.
  bool is_weight() const;
};

/// A place where the reference's value has a name and can be compared or replaced.
struct Boundary {
  std::string path;  // FORMAT.md, "Paths": "blocks.0.norm1", "blocks.0/add.1", "" for the root's result
  int call = 0;
  std::string kind;  // ATen name of the op, or the module's class name
  int position = 0;  // after this many ops of Program::ops have run
  Value value;
  bool comparable = true;  // false: uninitialised memory, or not floating or integer data
  int line = -1;  // of the source that computed the value: its op's, a module's result has its last op's; -1: unknown
  int library_line = -1;  // inside the library, where the user's line goes through it
};

struct Program {
  std::vector<Op> ops;
  std::vector<ModuleCall> calls;
  std::vector<Leaf> leaves;
  std::vector<Boundary> boundaries;  // in execution order; op outputs (views left out), module outputs, named points
  std::map<std::pair<std::string, int>, size_t> index;  // (path, call) -> boundary, the first of that name
  std::vector<std::string> lines;                       // "modeling_llama.py:312 in forward"

  /// The text of a line; "" for -1.
  std::string source(int line) const { return line < 0 ? "" : lines[static_cast<size_t>(line)]; }

  /// Index of the boundary, or nullopt.
  std::optional<size_t> find(std::string_view path, int call = 0) const;

  /// Is this boundary's value what the model returns, under whatever name?
  bool is_result(size_t boundary) const;

  /// For each boundary the indices of those boundaries of `marked` (same length as `boundaries`) that it is directly
  /// computed from, that is, along dataflow without another marked one between; views and in-place writes count as
  /// dataflow.
  std::vector<std::vector<size_t>> marked_ancestors(const std::vector<bool>& marked) const;

  /// For each marked boundary the indices into `ops` of those ops that it is computed by since the marked boundaries
  /// before it (or since the leaves), ascending.
  std::vector<std::vector<size_t>> ops_since(const std::vector<bool>& marked) const;

  /// For each boundary: is it marked, or is some marked boundary computed from it (FORMAT: "covered")?
  std::vector<bool> covered_by(const std::vector<bool>& marked) const;
};

/// Builds the program from a dump's events. Throws Error naming the event when one is malformed, refers to an unknown
/// value, or the ids are cyclic.
Program load_program(const Dump& dump);

/// What the dump stores of a value. Throws Error when it is damaged, or another dtype or shape than the program says.
at::Tensor stored_value(const Dump& dump, const Value& value);

}  // namespace parity
