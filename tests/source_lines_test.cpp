// Lines of source: read from a recording, carried into rows and extracts, and refused where a file lies about them.
#include <doctest/doctest.h>

#include "core/error.hpp"
#include "dump/sketch.hpp"
#include "dump/source_lines.hpp"
#include "jobs/rows.hpp"
#include "pair/candidate.hpp"
#include "program_file.hpp"
#include "trace/extract.hpp"

namespace parity {
namespace {

using testing::contains, testing::json, testing::ProgramFile, testing::ref;

json line_note(int64_t number, const json& text) { return {{"e", "note"}, {"source_line", number}, {"text", text}}; }

// A module "block" that adds 1 to x and returns a view of the doubled sum.
void record_block(ProgramFile& file) {
  const at::Tensor x = at::ones({2, 3}), y = x + 1, z = y * 2;
  file.event(line_note(4, "port/models/block.py:12 in forward"));
  file.event(line_note(9, "port/models/block.py:13 in forward"));
  file.event(line_note(2, "torch/nn/functional.py:99 in double"));
  const int64_t in = file.leaf(x, {"inputs/0/x"});
  file.event({{"e", "call"},
              {"id", 0},
              {"path", "block"},
              {"call", 0},
              {"parent", -1},
              {"class", "Block"},
              {"inputs", json::array()},
              {"literals", json::object()}});
  const int64_t sum = file.op("aten::add.Tensor", {ref(in), 1}, {y}, {}, {{"in", 0}, {"src", 4}});
  const int64_t doubled = file.op("aten::mul.Tensor", {ref(sum), 2}, {z}, {}, {{"in", 0}, {"src", 9}, {"lib", 2}});
  file.event({{"e", "ret"},
              {"id", 0},
              {"outputs", {{{"v", doubled}, {"d", "float32"}, {"s", {2, 3}}, {"k", std::to_string(doubled)}}}}});
}

std::string complaint(const std::function<void(ProgramFile&)>& record) {
  ProgramFile file("lines-bad.h5");
  record(file);
  const Dump dump = file.dump();
  try {
    load_program(dump);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("source lines: an op has its own, a module that of the op that made its result") {
  ProgramFile file("lines.h5");
  record_block(file);
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  const auto source = [&](const char* path) { return row_of(program, program.find(path).value()).source; };
  CHECK(source("block/add.0") == "block.py:12 in forward");
  CHECK(source("block/mul.0") == "block.py:13 in forward");
  CHECK(source("block") == "block.py:13 in forward");
  const Boundary& product = program.boundaries[program.find("block/mul.0").value()];
  CHECK(program.source(product.library_line) == "functional.py:99 in double");
  CHECK(program.ops[0].library_line == -1);
  for (const CandidateTensor& tensor : tensors_of(dump, program))
    CHECK(tensor.source == (tensor.path == "block/add.0" ? "block.py:12 in forward" : "block.py:13 in forward"));
}

TEST_CASE("source lines: what is written through a view has the line of the write") {
  ProgramFile file("lines-view.h5");
  const at::Tensor base = at::zeros({4}), written = at::ones({4});
  file.event(line_note(0, "a.py:1 in f"));
  file.event(line_note(1, "a.py:2 in f"));
  file.event(line_note(2, "a.py:3 in f"));
  const int64_t x = file.leaf(base.clone());
  const int64_t made = file.op("aten::mul.Tensor", {ref(x), 0}, {base}, {}, {{"src", 0}});
  const int64_t view =
      file.op("aten::view", {ref(made), {2, 2}}, {base.view({2, 2})}, {}, {{"view", true}, {"src", 1}});
  file.op("aten::fill_.Scalar", {ref(view), 1}, {written.view({2, 2})}, {}, {{"ids", {view}}, {"src", 2}});
  file.event(
      {{"e", "point"}, {"path", "out"}, {"call", 0}, {"role", "output"}, {"v", made}, {"d", "float32"}, {"s", {4}}});
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  CHECK(row_of(program, program.find("out").value()).source == "a.py:3 in f");
}

TEST_CASE("source lines: a recording without them has none") {
  ProgramFile file("lines-none.h5");
  const int64_t x = file.leaf(at::ones({2}));
  file.op("aten::add.Tensor", {ref(x), 1}, {at::full({2}, 2.)});
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  CHECK(program.lines.empty());
  CHECK(row_of(program, 0).source.empty());
}

TEST_CASE("source lines: an extract keeps those of its ops and no others") {
  ProgramFile file("lines-extract.h5");
  record_block(file);
  const Dump dump = file.dump();
  const testing::TemporaryFile cut("lines-cut.h5");
  extract(dump, load_program(dump), {"block/mul.0", 0, nullptr}, cut.path());
  const Dump small(cut.path());
  const Program program = load_program(small);
  CHECK(row_of(program, program.find("block/mul.0").value()).source == "block.py:13 in forward");
  CHECK(program.lines == std::vector<std::string>{"block.py:13 in forward", "functional.py:99 in double"});
}

TEST_CASE("source lines: a port's point says its own, as text") {
  testing::TemporaryFile file("lines-point.h5");
  testing::RecordingFile recording(file.path());
  recording.value("0", at::ones({2}));
  recording.event({{"e", "point"},
                   {"path", "y"},
                   {"call", 0},
                   {"role", "output"},
                   {"v", 0},
                   {"d", "float32"},
                   {"s", {2}},
                   {"k", "0"},
                   {"src", "attention.cpp:88 in forward"}});
  recording.close();
  const Dump dump(file.path());
  const Program program = load_program(dump);
  CHECK(tensors_of(dump, program).at(0).source == "attention.cpp:88 in forward");
  CHECK(sketch_points(dump).at(0).source == "attention.cpp:88 in forward");
}

TEST_CASE("source lines: folders are left out, other texts stay") {
  CHECK(short_line("transformers/models/llama/modeling_llama.py:312 in forward") == "modeling_llama.py:312 in forward");
  CHECK(short_line("C:\\port\\attention.cpp:88") == "attention.cpp:88");
  CHECK(short_line("a.cu:7 in f<a/b>") == "a.cu:7 in f<a/b>");
  CHECK(short_line("exp and/or log") == "exp and/or log");
  CHECK(short_line("x/y") == "x/y");
  CHECK(short_line("") == "");
  CHECK(short_line("a/b:") == "a/b:");
}

TEST_CASE("source lines: control characters and megabytes are shown as what they are, and cut") {
  ProgramFile file("lines-hostile.h5");
  file.event(line_note(0, "a.py:1 in \x1b[2Jf\nverdict pass"));
  file.event(line_note(1, std::string(3 << 20, 'x')));
  std::string wide;  // cut in the middle of a character unless the reader looks
  for (int i = 0; i < 1000; ++i) wide += "€";
  file.event(line_note(2, "x" + wide));
  const int64_t x = file.leaf(at::ones({2}));
  for (int line = 0; line < 3; ++line)
    file.op("aten::add.Tensor", {ref(x), 1}, {at::full({2}, 2.)}, {}, {{"src", line}});
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  CHECK(row_of(program, 0).source == "a.py:1 in \\x1b[2Jf\\nverdict pass");
  CHECK(row_of(program, 1).source.size() < 300);
  CHECK(row_of(program, 2).source.size() < 300);
  CHECK(!contains(row_of(program, 2).source, "\\x"));
}

TEST_CASE("source lines: wrong types and numbers that nothing defines are named") {
  const auto op_with = [](const char* key, const json& value) {
    return complaint([&](ProgramFile& file) {
      file.event(line_note(0, "a.py:1 in f"));
      const int64_t x = file.leaf(at::ones({2}));
      file.op("aten::add.Tensor", {ref(x), 1}, {at::full({2}, 2.)}, {}, {{key, value}});
    });
  };
  for (const char* key : {"src", "lib"}) {
    CHECK(op_with(key, 0).empty());
    CHECK(op_with(key, nullptr).empty());
    for (const json& lie : {json(1), json(-1), json(int64_t{1} << 62), json(UINT64_MAX)}) {
      CAPTURE(lie.dump());
      CHECK(contains(op_with(key, lie), "lines-bad.h5: dataset '/trace/events', event 3: field '"));
      CHECK(contains(op_with(key, lie), "which no note defines"));
    }
    for (const json& lie : {json(1.5), json(true), json::array({0}), json::object()}) {
      CAPTURE(lie.dump());
      CHECK(contains(op_with(key, lie), "is neither a text nor the number of a source line"));
    }
  }
  const auto note = [](const json& event) {
    return complaint([&](ProgramFile& file) {
      file.event(event);
      file.event(line_note(7, "a.py:1 in f"));
    });
  };
  CHECK(contains(note(line_note(0, 12)), "event 1: a line of source is not"));
  CHECK(contains(note({{"e", "note"}, {"source_line", 0}}), "a line of source is not"));
  CHECK(contains(note({{"e", "note"}, {"source_line", "7"}, {"text", "x"}}), "a line of source is not"));
  CHECK(contains(note(line_note(7, "b.py:1 in f")), "event 2: source line 7 is defined twice"));
  CHECK(note({{"e", "note"}, {"text", "anything"}}).empty());
}

}  // namespace parity
