#include <doctest/doctest.h>

#include "core/error.hpp"
#include "diagnose/shard_dtypes.hpp"
#include "diagnose/shard_faults.hpp"
#include "dump/shard.hpp"
#include "program_file.hpp"
#include "ranks/join_shards.hpp"
#include "ranks/partial_sums.hpp"

using namespace parity;
using nlohmann::json;
using Kind = Placement::Kind;

namespace {

const Mesh kTwoRanks{{{"tp", 2}}};
const Mesh kSquare{{{"dp", 2}, {"tp", 2}}};

at::Tensor numbers(at::IntArrayRef shape, int64_t seed = 0) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed + 1));
  return at::randn(shape, generator);
}

CandidateTensor tensor_of(const std::string& path, const at::Tensor& value) {
  return {path, 0, value.scalar_type(), value.sizes().vec(), [value] { return value; }};
}

// Recordings of ranks that hold these parts under one name.
std::vector<RankRecording> ranks_with(const Mesh& mesh, const std::vector<at::Tensor>& parts, const json& specs) {
  std::vector<RankRecording> ranks;
  for (size_t r = 0; r < parts.size(); ++r) {
    json axes = json::array();
    for (const auto& [name, size] : mesh.axes) axes.push_back({name, size});
    const json text{{"mesh", axes}, {"at", mesh.at(static_cast<int64_t>(r))}, {"specs", specs}};
    ranks.push_back({read_shard(text, "rank"), {tensor_of("x", parts[r])}, "rank" + std::to_string(r)});
  }
  return ranks;
}

std::vector<CandidateTensor> join(const std::vector<RankRecording>& ranks, const at::Tensor& whole) {
  std::vector<std::string> notes;
  WholeTensors wholes;
  if (whole.defined()) wholes[{"x", 0}] = {whole.sizes().vec(), [whole] { return whole; }};
  return join_shards(ranks, wholes, notes);
}

ShardedTensor sharded(const Mesh& mesh, const Placements& placements, const std::vector<at::Tensor>& parts,
                      bool agree = true) {
  ShardedTensor tensor;
  tensor.mesh = tensor.grid = mesh;
  tensor.placements = placements;
  tensor.agree = agree;
  for (size_t r = 0; r < parts.size(); ++r) {
    tensor.ranks.push_back(static_cast<int64_t>(r));
    tensor.dtypes.push_back(parts[r].scalar_type());
    tensor.shapes.push_back(parts[r].sizes().vec());
    tensor.load.emplace_back([part = parts[r]] { return part; });
    tensor.weight.emplace_back([] { return at::Tensor(); });
  }
  return tensor;
}

ShardEvidence evidence(const ShardedTensor& tensor, const at::Tensor& expected) {
  return {tensor, expected, [expected](const at::Tensor& whole) { return at::allclose(whole, expected); }, nullptr};
}

std::string reason(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("shards: parts are joined in the order of the mesh, innermost axis first") {
  const at::Tensor whole = numbers({4, 6});
  const auto rows = whole.chunk(2, 0);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& row : rows)
    for (const at::Tensor& part : row.chunk(2, 1)) parts.push_back(part);
  const Placements both{{Kind::split, 0}, {Kind::split, 1}};
  CHECK(at::equal(join_parts(kSquare, both, parts), whole));
  CHECK((joined_shape(kSquare, both, {{2, 3}, {2, 3}, {2, 3}, {2, 3}}) == std::vector<int64_t>{4, 6}));
  const Placements one_axis{{Kind::split, 0}, {Kind::split, 0}};  // dp outermost
  CHECK(at::equal(join_parts(kSquare, one_axis, whole.chunk(4, 0)), whole));
  CHECK_FALSE(joined_shape(kTwoRanks, {{Kind::split, 0}}, {{2, 3}, {2, 4}}));
  CHECK_FALSE(joined_shape(kTwoRanks, {{Kind::split, 2}}, {{2, 3}, {2, 3}}));
}

TEST_CASE("shards: fused sections are split by themselves, partial sums added, copies taken once") {
  const at::Tensor whole = numbers({2, 12});
  std::vector<at::Tensor> parts;
  for (int64_t r = 0; r < 2; ++r) {
    std::vector<at::Tensor> sections;
    for (const at::Tensor& section : whole.chunk(3, 1)) sections.push_back(section.chunk(2, 1)[r]);
    parts.push_back(at::cat(sections, 1));
  }
  CHECK(at::equal(join_parts(kTwoRanks, {{Kind::split, 1, 3}}, parts), whole));
  CHECK_FALSE(at::equal(join_parts(kTwoRanks, {{Kind::split, 1}}, parts), whole));
  CHECK(at::equal(join_parts(kTwoRanks, {{Kind::partial}}, {whole, whole}), whole * 2));
  CHECK(at::equal(join_parts(kTwoRanks, {{Kind::replicated}}, {whole, whole * 3}), whole));
}

TEST_CASE("shards: placements that nobody says are read off shapes, sections and ambiguous axes off values") {
  const at::Tensor whole = numbers({4, 12});
  const auto columns = join(ranks_with(kTwoRanks, whole.chunk(2, 1), json::array()), whole);
  REQUIRE(columns.size() == 1);
  CHECK((columns[0].shards->placements == Placements{{Kind::split, 1}}));
  CHECK(columns[0].shards->by_shape);
  CHECK(at::equal(columns[0].load(), whole));
  const auto halves = whole.chunk(2, 0);  // dp splits the rows, tp copies; the other reading has the same shape
  const auto batch = join(ranks_with(kSquare, {halves[0], halves[0], halves[1], halves[1]}, json::array()), whole);
  CHECK((batch[0].shards->placements == Placements{{Kind::split, 0}, {Kind::replicated}}));
  CHECK(at::equal(batch[0].load(), whole));
  const auto fused = at::cat({whole.slice(1, 0, 2), whole.slice(1, 4, 6), whole.slice(1, 8, 10)}, 1);
  const auto rest = at::cat({whole.slice(1, 2, 4), whole.slice(1, 6, 8), whole.slice(1, 10, 12)}, 1);
  const auto sections = join(ranks_with(kTwoRanks, {fused, rest}, json::array()), whole);
  CHECK((sections[0].shards->placements == Placements{{Kind::split, 1, 3}}));
}

TEST_CASE("shards: what has no counterpart is joined as said, taken from one rank, or left out") {
  const at::Tensor value = numbers({4});
  CHECK(join(ranks_with(kTwoRanks, {value, value}, json::array()), {}).size() == 1);
  CHECK(join(ranks_with(kTwoRanks, {value, value + 1}, json::array()), {}).empty());
  const json split{{"x", {{"tp", "split(-1)"}}}};
  const auto joined =
      join(ranks_with(kTwoRanks, {value, value + 1}, json::array({json::array({"x", split["x"]})})), {});
  REQUIRE(joined.size() == 1);
  CHECK(at::equal(joined[0].load(), at::cat({value, value + 1})));
}

TEST_CASE("shards: a spec that does not fit, and places that are none") {
  const auto spec = [](const char* text) { return json::array({json::array({"*", {{"tp", text}}})}); };
  const at::Tensor value = numbers({4});
  CHECK(reason([&] {
          join(ranks_with(kTwoRanks, {value, value}, spec("split(1)")), value);
        }).find("does not fit") != std::string::npos);
  const char* good = R"j({"mesh": [["tp", 2]], "at": [1], "specs": [["*.q", {"tp": "split(-1,3)"}]]})j";
  CHECK((read_shard(json::parse(good), "rank0.h5").placements("a.q", 0) == Placements{{Kind::split, -1, 3}}));
  for (const char* bad :
       {"3", R"j({"mesh": []})j", R"j({"mesh": [["tp", 2]]})j", R"j({"mesh": [["tp", 2]], "at": [2]})j",
        R"j({"mesh": [["tp", 2]], "at": [0, 0]})j", R"j({"mesh": [["tp", 0]], "at": [0]})j",
        R"j({"mesh": [["tp", 1048576]], "at": [0]})j", R"j({"mesh": [["a", 65536], ["b", 65536]], "at": [0, 0]})j",
        R"j({"mesh": [["tp", 2]], "at": [0], "specs": [["x", {"dp": "partial"}]]})j",
        R"j({"mesh": [["tp", 2]], "at": [0], "specs": [["x", {"tp": "split(1,0)"}]]})j",
        R"j({"mesh": [["tp", 2]], "at": [0], "specs": [["x", {"tp": "split(1"}]]})j",
        R"j({"mesh": [["tp", 2]], "at": [0], "specs": [["x", {"tp": 1}]]})j"}) {
    const std::string why = reason([&] { read_shard(json::parse(bad), "rank0.h5"); });
    CHECK_MESSAGE(why.starts_with("rank0.h5: "), bad);
    CHECK_MESSAGE(why.find('\n') == std::string::npos, bad);
  }
}

TEST_CASE("shards: faults between ranks are named") {
  const at::Tensor right = numbers({4, 8}), other = numbers({4, 8}, 7);
  const auto halves = right.chunk(2, 1);
  const Placements copies{{Kind::replicated}}, columns{{Kind::split, 1}};
  const auto of_copies = [&](const at::Tensor& a, const at::Tensor& b) {
    const ShardedTensor tensor = sharded(kTwoRanks, copies, {a, b}, false);
    return differing_copies(evidence(tensor, right)).name;
  };
  CHECK(of_copies(other, right - other) == "all-reduce missing");
  CHECK(of_copies(right, right + other) == "copies diverged");
  CHECK(of_copies(other, other * 3) == "copies differ");
  CHECK(of_copies(right, right * (1 + 1e-7)) == "copies differ by roundings");
  const auto of_whole = [&](const Placements& placements, const std::vector<at::Tensor>& parts) {
    const ShardedTensor tensor = sharded(kTwoRanks, placements, parts);
    const auto fault = wrong_whole(evidence(tensor, right));
    return fault ? fault->name : "";
  };
  CHECK(of_whole(columns, {halves[1], halves[0]}) == "rank order");
  CHECK(of_whole(copies, {at::cat({halves[1], halves[0]}, 1), at::cat({halves[1], halves[0]}, 1)}) == "rank order");
  CHECK(of_whole(copies, {right * 2, right * 2}) == "all-reduce doubled");
  CHECK(of_whole({{Kind::partial}}, {right, right}) == "all-reduce doubled");
  const at::Tensor along_rows = at::cat({halves[0], halves[1]}, 0);
  CHECK(of_whole(copies, {along_rows.reshape({4, 8}), along_rows.reshape({4, 8})}) == "gathered along another axis");
  CHECK(of_whole(columns, {halves[0], halves[1].to(at::kBFloat16).to(at::kFloat)}) == "shard dtype");
  CHECK(of_whole(columns, {halves[0] * 3, halves[1] + 1}).empty());
  const ShardedTensor wide = sharded(kTwoRanks, copies, {along_rows, along_rows});
  CHECK(wrong_shape(evidence(wide, right))->name == "gathered along another axis");
  const ShardedTensor one = sharded(kTwoRanks, columns, {halves[0], halves[1] + 1});
  CHECK(rank_at_fault(evidence(one, right)) == "tp 1");
  const ShardedTensor mixed = sharded(kTwoRanks, columns, {halves[0], halves[1].to(at::kBFloat16)});
  CHECK(other_dtype(mixed)->name == "shard dtype");
}

TEST_CASE("shards: the order of four ranks, one of two axes of the mesh") {
  const Mesh four{{{"tp", 4}}};
  const at::Tensor right = numbers({4, 8});
  const auto parts = right.chunk(4, 1);
  const ShardedTensor tensor = sharded(four, {{Kind::split, 1}}, {parts[2], parts[0], parts[1], parts[3]});
  const auto fault = wrong_whole(evidence(tensor, right));
  REQUIRE(fault);
  CHECK(fault->detail.find("1, 2, 0, 3") != std::string::npos);
  const auto rows = right.chunk(2, 0);
  const ShardedTensor square =
      sharded(kSquare, {{Kind::split, 0}, {Kind::replicated}}, {rows[1], rows[1], rows[0], rows[0]});
  CHECK(wrong_whole(evidence(square, right))->detail.find("over dp") != std::string::npos);
}
