#include "cli/snippet.hpp"
#include "measure/measure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <set>

#include "core/plain.hpp"

namespace parity::cli {
namespace {

struct Argument {
  std::string identifier, load, type;
};

// Words that no parameter may be called: C++'s, and those of the snippet.
const std::set<std::string> kTaken{
    "auto",  "bool",   "break",  "case",     "char",   "class",  "const",    "continue", "default",  "delete",
    "do",    "double", "else",   "enum",     "export", "false",  "float",    "for",      "if",       "int",
    "long",  "new",    "not",    "operator", "and",    "or",     "private",  "public",   "register", "return",
    "short", "signed", "sizeof", "static",   "struct", "switch", "template", "this",     "true",     "try",
    "union", "using",  "void",   "while",    "ported", "repro",  "stats",    "computed", "unsigned", "virtual"};

std::string identifier_of(const std::string& name, std::set<std::string>& used) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front()))) text = "input_" + text;
  while (text.find("__") != std::string::npos) text.erase(text.find("__"), 1);
  if (kTaken.contains(text)) text += "_";
  std::string unique = text;
  for (int n = 2; !used.insert(unique).second; ++n) unique = fmt::format("{}_{}", text, n);
  return unique;
}

std::string literal(const std::string& text) {
  // JSON's escapes are C++'s; all but plain letters are escaped only where something among them is not to be seen.
  return nlohmann::json(text).dump(-1, ' ', plain(text) != text, nlohmann::json::error_handler_t::replace);
}

std::string type_of(at::ScalarType dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{} [{}]", dtype_name(dtype), fmt::join(shape, ", "));
}

// "weights/blocks.0.norm1.weight" inside blocks.0 -> "norm1.weight".
std::string short_name(const std::string& name, const std::string& module) {
  return !module.empty() && name.starts_with(module + ".") ? name.substr(module.size() + 1) : name;
}

std::vector<Argument> arguments_of(const Program& program) {
  const std::string module = program.calls.empty() ? "" : program.calls.front().path;
  std::vector<Argument> arguments;
  std::set<std::string> used;
  for (const bool weights : {false, true})
    for (const Leaf& leaf : program.leaves) {
      if (leaf.names.empty() || leaf.names.front().starts_with("weights/") != weights) continue;
      const std::string& link = leaf.names.front();
      const std::string name = weights ? link.substr(8) : link.substr(link.find('/', link.find('/') + 1) + 1);
      arguments.push_back({identifier_of(short_name(name, module), used),
                           fmt::format("repro.{}({})", weights ? "weight" : "input", literal(name)),
                           type_of(leaf.value.dtype, leaf.value.shape)});
    }
  return arguments;
}

// What the function is called with beside tensors: a module's arguments, or an op's.
std::string literals_of(const Program& program, const std::string& path) {
  for (const ModuleCall& call : program.calls)
    if (call.path == path) return call.literals.empty() ? "" : call.literals.dump();
  for (const Op& op : program.ops)
    if (op.path == path) return fmt::format("{} {} {}", op.name, op.args.dump(), op.kwargs.dump());
  return "";
}

// A line of the head: where the reference computes what the port is to compute.
std::string source_of(const Program& program, const ReproRow& result) {
  const auto boundary = program.find(result.path, result.call);
  const std::string source = boundary ? program.source(program.boundaries[*boundary].line) : "";
  return source.empty() ? "" : fmt::format("// The reference computes it at {}.\n", plain(source));
}

std::string check(const ReproRow& row, const std::string& computed) {
  return fmt::format(
      "  {{\n"
      "    const parity::Stats stats = parity::measure(repro.value({}), {});  // {}: {}\n"
      "    CHECK(stats.special_mismatch == 0);\n"
      "    CHECK(stats.difference_norm <= {:.3g} * stats.reference_norm);\n"
      "  }}\n",
      literal(row.key), computed, row.path.empty() ? "the result" : plain(row.path), type_of(row.dtype, row.shape),
      row.limit);
}

}  // namespace

std::string test_snippet(const Dump& extract, const Program& program, const Repro& repro) {
  const std::vector<Argument> arguments = arguments_of(program);
  std::vector<const ReproRow*> results;
  for (const ReproRow& row : repro.rows)
    if (row.result) results.push_back(&row);
  // In a comment: a name with a line break in it would be code.
  const std::string title = plain(results.front()->path.empty() ? extract.model() : results.front()->path);
  const char* type = results.size() == 1 ? "at::Tensor" : "std::vector<at::Tensor>";
  std::vector<std::string> parameters, names;
  std::string loads, checks;
  for (const Argument& a : arguments) {
    parameters.push_back("const at::Tensor& " + a.identifier);
    names.push_back(a.identifier);
    loads += fmt::format("  const at::Tensor {} = {};  // {}\n", a.identifier, a.load, a.type);
  }
  for (size_t j = 0; j < results.size(); ++j)
    checks += check(*results[j], results.size() == 1 ? "computed" : fmt::format("computed.at({})", j));
  const std::string others = plain(literals_of(program, results.front()->path));
  return fmt::format(
      "// The port against '{}', call {}, as recorded. Link with the library `parity`; run where {} lies.\n"
      "{}// The limits are twice what other valid arithmetic in the recorded dtypes differs by.\n"
      "#include <doctest/doctest.h>\n\n#include <vector>\n\n#include \"measure/measure.hpp\"\n#include "
      "\"dump/dump.hpp\"\n\n"
      "// The function under test, given the recorded inputs and weights.{}\n"
      "{} ported({});\n\n"
      "TEST_CASE({}) {{\n  const parity::Dump repro({});\n{}"
      "  const {} computed = ported({});\n{}}}\n",
      title, results.front()->call, plain(extract.file().filename().string()), source_of(program, *results.front()),
      others.empty() ? "" : " Beside them it had: " + others, type, fmt::join(parameters, ", "),
      literal("port: " + title + " as recorded"), literal(extract.file().string()), loads, type, fmt::join(names, ", "),
      checks);
}

}  // namespace parity::cli
