// The contract of the command line: exit status, messages, JSON keys (design 1.2, 1.3). Runs the real program.
#include <doctest/doctest.h>
#include <hdf5.h>

#include "command.hpp"
#include "test_places.hpp"

using namespace parity::test;

namespace {

nlohmann::json json_of(const std::filesystem::path& file) { return nlohmann::json::parse(read_text(file)); }

// One dump keeps these tests short; the whole set runs in main_job_test.cpp.
std::string run_one(const Scratch& scratch, const std::string& more = "") {
  return "run --layer all --reference " + reference_dump("diffusers-wan-t2v.bf16.h5").string() + " --out " +
         (scratch / "out").string() + " --json " + (scratch / "r.json").string() + " " + more;
}

}  // namespace

TEST_CASE("cli: help and version succeed, no arguments show the help") {
  const auto help = parity_check("--help");
  CHECK(help.status == 0);
  CHECK(help.out.find("run") != std::string::npos);
  CHECK(parity_check("--version").out.find("0.") == 0);
  CHECK(parity_check("").out == help.out);
}

TEST_CASE("cli: usage errors exit 2 with a message on standard error") {
  for (const std::string arguments :
       {"nonsense", "run", "--layer", "run --layer all --dtype fp8", "run --layer all --mode sideways",
        "run --layer all --threads 0", "run --layer all --device cuda", "run --layer all --device tpu",
        "run --layer all --reference /nonexistent.h5", "inspect", "inspect /nonexistent.h5"}) {
    CAPTURE(arguments);
    const auto result = parity_check(arguments);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(lines(result.err) == 1);
    CHECK(result.err.starts_with("parity-check: "));
  }
}

TEST_CASE("cli: a budget that is not one is said in one line") {
  const std::string here = reference_dump("diffusers-wan-t2v.bf16.h5").string();
  for (const std::string budget : {"--budget-time -1", "--budget-time soon", "--budget-time nan", "--budget-time inf",
                                   "--budget-memory 0", "--budget-memory -2", "--budget-memory 1e30"}) {
    CAPTURE(budget);
    const auto result = parity_check("compare " + here + " " + here + " " + budget);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(lines(result.err) == 1);
    CHECK(result.err.find(budget.substr(0, budget.find(' '))) != std::string::npos);
  }
}

TEST_CASE("cli: a count that is not one is said in one short line") {
  for (const std::string arguments :
       {"selftest --sample 0", "selftest --sample 20:1", "bench gpt2 --prompt 0", "bench gpt-oss --layers -1",
        "bench wan --latent 1,0,2", "bench compare --repeats nan"}) {
    CAPTURE(arguments);
    const auto result = parity_check(arguments);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(lines(result.err) == 1);
    CHECK(result.err.find("' is not a number from 1 to 1000000") != std::string::npos);
  }
}

TEST_CASE("cli: a file that is not there is said in one line, by every command") {
  const std::string here = reference_dump("diffusers-wan-t2v.bf16.h5").string(), gone = "/nonexistent/x.h5";
  for (const std::string arguments :
       {"inspect " + gone, "compare " + gone + " " + here, "compare " + here + " " + gone, "paths " + gone,
        "blame " + here + " " + gone, "weights " + gone + " " + here, "weights " + here + " " + gone,
        "extract " + gone + " --layer a -o /tmp/x.h5",
        "extract " + here + " --layer a -o /tmp/x.h5 --candidate " + gone, "replay " + gone,
        "video " + gone + " " + gone, "video " + here + " " + gone, "bench video " + gone + " " + gone,
        "bench wan --weights " + gone, "bench wan --config " + gone, "run --layer all --reference " + gone,
        "compare " + here + " " + here + " --map " + gone, "compare " + here + " " + here + " --thresholds " + gone}) {
    CAPTURE(arguments);
    const auto result = parity_check(arguments);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(lines(result.err) == 1);
    CHECK(result.err.starts_with("parity-check: " + gone + ": "));
  }
  const auto folder = parity_check("replay /tmp");
  CHECK(folder.status == 2);
  CHECK(folder.err == "parity-check: /tmp: is a folder, not a file\n");
}

TEST_CASE("cli: what standard output cannot take is an error, not silence") {
  for (const std::string command : {"--help", "doctor", "inspect "}) {
    CAPTURE(command);
    const std::string file = command == "inspect " ? reference_dump("diffusers-wan-t2v.bf16.h5").string() : "";
    const auto result = parity_check(command + file + " >/dev/full");
    CHECK(result.status == 2);
    CHECK(lines(result.err) == 1);
  }
}

TEST_CASE("cli: a layer or a model that matches nothing is an error, not a pass") {
  const Scratch scratch;
  const auto layer =
      parity_check("run --layer 'no.such.layer' --reference " + reference_dump("diffusers-wan-t2v.bf16.h5").string() +
                   " --out " + (scratch / "out").string());
  CHECK(layer.status == 2);
  CHECK(layer.err.find("no.such.layer") != std::string::npos);
  CHECK(parity_check("run --layer all --model llama --out " + (scratch / "out").string()).status == 2);
}

TEST_CASE("cli: files that are not recordings are refused in one line") {
  const Scratch scratch;
  const std::string good = read_text(reference_dump("diffusers-wan-t2v.bf16.h5"));
  std::ofstream(scratch / "empty.h5").close();
  std::ofstream(scratch / "text.h5") << "not HDF5 at all\n";
  std::ofstream(scratch / "half.h5", std::ios::binary) << good.substr(0, good.size() / 2);
  for (const std::string name : {"empty.h5", "text.h5", "half.h5"}) {
    CAPTURE(name);
    for (const std::string command : {"inspect ", "run --layer all --reference "}) {
      const auto result = parity_check(command + (scratch / name).string());
      CHECK(result.status == 2);
      CHECK(result.err.find(name) != std::string::npos);
      CHECK(lines(result.err) == 1);
    }
  }
}

TEST_CASE("cli: the report has every key of parity-report/1") {
  const Scratch scratch;
  const auto result = parity_check(run_one(scratch));
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  const auto report = json_of(scratch / "r.json");
  CHECK(report == json_of(scratch / "out" / "report.json"));
  for (const auto* key : {"schema", "command", "seconds", "machine", "reference", "candidate", "verdict", "counts",
                          "first_divergence", "ops", "dtype_paths", "video"})
    CHECK(report.contains(key));
  CHECK(report["schema"] == "parity-report/1");
  CHECK(report["verdict"] == "pass");
  CHECK(report["first_divergence"].is_null());
  CHECK(report["counts"].size() == 6);
  CHECK(report["reference"]["sha256"].get<std::string>().size() == 64);
  REQUIRE(report["ops"].size() > 100);
  for (const auto& op : report["ops"]) {
    for (const auto* key : {"index", "path", "candidate_path", "kind", "call", "dtype", "shape", "verdict", "gate",
                            "diagnosis", "logic", "forced", "free", "amplification", "blame", "rerun"})
      CHECK(op.contains(key));
    CHECK(op["verdict"] == "pass");
  }
  CHECK(report["counts"]["pass"] == report["ops"].size());
}

TEST_CASE("cli: layer, dtype and mode choose what is compared, quiet prints nothing") {
  const Scratch scratch;
  const auto result = parity_check("run --layer 'blocks.1.*' --dtype bf16 --mode forced --quiet --reference " +
                                   reference_dump("diffusers-wan-t2v.bf16.h5").string() + " --out " +
                                   (scratch / "out").string() + " --json " + (scratch / "r.json").string());
  CHECK(result.status == 0);
  CHECK(result.out.empty());
  const auto ops = json_of(scratch / "r.json")["ops"];
  CHECK(ops.size() > 10);
  for (const auto& op : ops) {
    CHECK(op["path"].get<std::string>().starts_with("blocks.1."));
    CHECK(op["dtype"] == "bf16");
    CHECK(op["free"]["rel_l2"].is_null());
  }
}

TEST_CASE("cli: a reference that was interrupted is never all green") {
  const Scratch scratch;
  const auto whole = reference_dump("diffusers-wan-t2v.bf16.h5"), part = scratch / "part.h5";
  std::filesystem::copy_file(whole, part);
  const hid_t file = H5Fopen(part.c_str(), H5F_ACC_RDWR, H5P_DEFAULT),
              complete = H5Aopen(file, "complete", H5P_DEFAULT);
  const int no = 0;
  REQUIRE(H5Awrite(complete, H5T_NATIVE_INT, &no) >= 0);
  H5Aclose(complete);
  H5Fclose(file);
  const std::string json = (scratch / "r.json").string();
  for (const std::string& command :
       {"run --layer all --quiet --reference " + part.string() + " --out " + (scratch / "out").string(),
        "compare --quiet " + part.string() + " " + whole.string()}) {
    CAPTURE(command);
    CHECK(parity_check(command + " --json " + json).status == 3);
    const auto report = json_of(json);
    CHECK(report["verdict"] == "inconclusive");
    CHECK(report["counts"]["untrusted"] == 1);
    CHECK(report["counts"]["fail"] == 0);
    CHECK(report["ops"].back()["path"] == "(reference)");
  }
}

TEST_CASE("cli: run, inspect and doctor read as text without a terminal's colours") {
  const Scratch scratch;
  CHECK(parity_check(run_one(scratch)).out.find('\033') == std::string::npos);
  const auto inspect = parity_check("inspect --verify " + reference_dump("diffusers-wan-t2v.bf16.h5").string());
  CHECK(inspect.status == 0);
  CHECK(inspect.out.find("blocks.0.attn1") != std::string::npos);
  CHECK(inspect.out.find("verified") != std::string::npos);
  CHECK(parity_check("doctor").out.find("LibTorch") != std::string::npos);
}

TEST_CASE("cli: bench compare times every size and dtype, sizes below one element are an error") {
  const Scratch scratch;
  const auto result = parity_check("bench compare --bytes 4096,100000 --dtypes fp32,bf16 --repeats 1 --json " +
                                   (scratch / "b.json").string());
  INFO(result.err);
  CHECK(result.status == 0);
  const auto rows = json_of(scratch / "b.json")["rows"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[1]["elements"] == 25000);
  CHECK(rows[2]["reference"] == "bf16");
  for (const auto& row : rows)
    for (const auto* what : {"reading_seconds", "sums_seconds", "statistics_seconds", "torch_isclose_seconds"})
      CHECK(row[what] > 0);
  const auto none = parity_check("bench compare --bytes 2 --dtypes fp32");
  CHECK(none.status == 2);
  CHECK(none.err.find("less than one element") != std::string::npos);
}

TEST_CASE("cli: bench attention writes its rows, a size without a token is an error") {
  const Scratch scratch;
  const auto result =
      parity_check("bench attention --frames 1,5 --height 64 --width 64 --heads 2 --head-width 16 --repeats 1 --json " +
                   (scratch / "b.json").string() + " --markdown " + (scratch / "b.md").string());
  INFO(result.err);
  CHECK(result.status == 0);
  const auto json = json_of(scratch / "b.json");
  CHECK(json["rows"].size() == 12);  // two lengths, three variants, two dtypes
  CHECK(json["rows"][0]["tokens"] == 16);
  CHECK(json["rows"][0]["seconds"] > 0);
  CHECK(json["published"].size() == 3);
  CHECK(std::filesystem::file_size(scratch / "b.md") > 1000);
  const auto none = parity_check("bench attention --frames 1 --height 8");
  CHECK(none.status == 2);
  CHECK(none.err.find("have no token") != std::string::npos);
}

TEST_CASE("cli: bench runs a forward and says what it took, an impossible configuration is an error") {
  const Scratch scratch;
  const std::string config = (std::filesystem::path(PARITY_SOURCE_DIR) / "tests/data/wan_small_config.json").string();
  const auto result =
      parity_check("bench wan --latent 1,8,8 --config " + config + " --json " + (scratch / "b.json").string());
  INFO(result.err);
  CHECK(result.status == 0);
  const auto bench = json_of(scratch / "b.json");
  CHECK(bench["tokens"] == 16);
  CHECK(bench["minimum_seconds"] > 0);
  std::ofstream(scratch / "bad.json") << R"({"dim": 100, "num_heads": 3, "num_layers": 1, "ffn_dim": 8})";
  CHECK(parity_check("bench wan --config " + (scratch / "bad.json").string()).status == 2);
  CHECK(parity_check("bench wan --config " + (scratch / "b.json").string() + " --latent 1,8").status == 2);
}
