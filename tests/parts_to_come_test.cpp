// Which values of a port that still runs wait for others, by their shapes alone.
#include <doctest/doctest.h>

#include "calls/parts_to_come.hpp"

namespace parity {
namespace {

using Sizes = std::vector<int64_t>;

struct ArrivedValue {
  std::string path;
  int call;
  Sizes shape;
};

// Two samples of 10 tokens, then of one token more; a width of 48, 6 heads of 8 (with a norm of their own).
Program two_samples() {
  Program program;
  const auto leaf = [&](const std::string& name, Sizes shape) {
    Leaf made;
    made.value.shape = std::move(shape);
    made.names = {name};
    program.leaves.push_back(std::move(made));
  };
  leaf("inputs/0", {2, 10});
  leaf("inputs/1", {2, 1});
  leaf("weights/embed.weight", {96, 48});
  leaf("weights/norm.weight", {8});
  for (const int call : {0, 1}) {
    const int64_t tokens = call == 0 ? 10 : 1;
    for (const auto& [path, shape] : std::vector<std::pair<std::string, Sizes>>{{"embed", {2, tokens, 48}},
                                                                                {"heads", {2, 6, tokens, 8}},
                                                                                {"scores", {2, 6, tokens, 10 + call}},
                                                                                {"head", {2, tokens, 96}}}) {
      Boundary boundary;
      boundary.path = path;
      boundary.call = call;
      boundary.value.shape = shape;
      program.boundaries.push_back(std::move(boundary));
    }
  }
  return program;
}

// "embed head" for those that are judged, "head 1" for a second call.
std::string judged_of(const std::vector<ArrivedValue>& arrived) {
  const Program program = two_samples();
  std::vector<CandidateTensor> tensors;
  std::vector<PortPair> pairs;
  for (const ArrivedValue& a : arrived) {
    for (size_t b = 0; b < program.boundaries.size(); ++b)
      if (program.boundaries[b].path == a.path && program.boundaries[b].call == a.call)
        pairs.push_back({b, tensors.size(), {}, 1, "path"});
    tensors.push_back({a.path, a.call, at::kFloat, a.shape, nullptr});
  }
  std::string text;
  for (const CandidateTensor& tensor : without_parts_to_come(program, tensors, pairs))
    text += (text.empty() ? "" : " ") + tensor.path + (tensor.call > 0 ? " " + std::to_string(tensor.call) : "");
  return text;
}

}  // namespace

TEST_CASE("parts to come: what is whole is judged, in whatever order of axes") {
  CHECK(judged_of({{"embed", 0, {2, 10, 48}}, {"heads", 0, {2, 6, 10, 8}}, {"head", 0, {2, 10, 96}}}) ==
        "embed heads head");
  CHECK(judged_of({{"embed", 0, {20, 48}}, {"heads", 0, {2, 10, 6, 8}}, {"head", 0, {20, 96}}}) == "embed heads head");
}

TEST_CASE("parts to come: chunks, samples and padding wait, and what comes after them") {
  CHECK(judged_of({{"embed", 0, {2, 6, 48}}, {"heads", 0, {2, 6, 6, 8}}, {"embed", 1, {2, 4, 48}}}) == "");
  CHECK(judged_of({{"embed", 0, {1, 10, 48}}, {"embed", 1, {1, 10, 48}}, {"embed", 2, {1, 1, 48}}}) == "");
  CHECK(judged_of({{"embed", 0, {12, 48}}, {"embed", 1, {8, 48}}}) == "");
  CHECK(judged_of({{"embed", 0, {2, 16, 48}}, {"heads", 0, {2, 6, 16, 8}}, {"head", 0, {2, 10, 96}}}) == "");
  CHECK(judged_of({{"embed", 0, {2, 10, 48}}, {"embed", 1, {2, 11, 48}}, {"head", 1, {2, 1, 96}}}) == "embed");
}

TEST_CASE("parts to come: the last token alone waits, and what is computed after it is judged") {
  for (const Sizes& last : {Sizes{2, 1, 96}, Sizes{2, 96}}) {
    CAPTURE(last.size());
    CHECK(
        judged_of({{"embed", 0, {2, 10, 48}}, {"head", 0, last}, {"embed", 1, {2, 1, 48}}, {"head", 1, {2, 1, 96}}}) ==
        "embed embed 1");
  }
}

TEST_CASE("parts to come: a later call shows that a value was no part") {
  const std::vector<ArrivedValue> chunks{{"embed", 0, {2, 10, 48}}, {"head", 0, {2, 9, 96}}, {"head", 1, {2, 2, 96}}};
  CHECK(judged_of(chunks) == "embed");
  std::vector<ArrivedValue> more = chunks;
  more.push_back({"head", 2, {2, 1, 96}});
  CHECK(judged_of(more) == "embed head");
}

TEST_CASE("parts to come: another width is judged at once, and more than the rest of the call has") {
  CHECK(judged_of({{"embed", 0, {2, 10, 32}}}) == "embed");
  CHECK(judged_of({{"embed", 0, {2, 10, 64}}}) == "embed");
  CHECK(judged_of({{"embed", 0, {2, 6, 48}}, {"heads", 0, {2, 6, 6, 4}}}) == "heads");
  CHECK(judged_of({{"embed", 0, {2, 6, 48}}, {"heads", 0, {2, 6, 48}}}) == "");  // heads and their features in one axis
  CHECK(judged_of({{"embed", 0, {2, 10, 48}}, {"head", 0, {2, 11, 96}}}) == "embed head");
  CHECK(judged_of({{"embed", 0, {2, 6, 48}}, {"scores", 0, {2, 6, 6, 6}}}) == "");  // keys are no width
}

}  // namespace parity
