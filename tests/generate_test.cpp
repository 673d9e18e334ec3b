// `parity-check generate`: the embedded pipelines beside diffusers' recordings, and what it is told.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "core/error.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/sampler.hpp"
#include "test_places.hpp"

using namespace parity;
using namespace parity::test;

TEST_CASE("generate: the embedded pipelines give the recorded frames") {
  const Scratch scratch;
  for (const std::string name : {"tiny-t2v", "tiny-i2v"}) {
    CAPTURE(name);
    const auto json = (scratch / "out.json").string(), frames = (scratch / "frames").string();
    const auto done = parity_check("generate " + name + " --min-psnr 80 --json " + json + " -o " + frames);
    INFO(done.out << done.err);
    CHECK(done.status == 0);
    const auto result = nlohmann::json::parse(read_text(json));
    CHECK(result["schema"] == "parity-generate/1");
    const auto& compared = result["comparison"];
    CHECK((compared["identical"] == true || compared["psnr_min"].get<double>() >= 80));
    CHECK(compared["stages"].back()["name"] == "video");
    CHECK(std::filesystem::exists(scratch / "frames" / "frame0012.png"));
  }
}

TEST_CASE("generate: another seed is another video") {
  const auto done = parity_check("generate tiny-t2v --min-psnr 80 --seed 8");
  CHECK(done.status == 1);
  CHECK(done.out.find("FAIL") != std::string::npos);
}

TEST_CASE("generate: a file says how, the command line overrides it") {
  const Scratch scratch;
  const std::string folder = std::string(PARITY_SOURCE_DIR) + "/reference_dumps/pipelines/tiny-t2v/";
  const auto generate = [&](nlohmann::json config, const std::string& more) {
    config["pipeline"] = folder + "pipeline", config["inputs"] = folder + "inputs.safetensors";
    std::ofstream(scratch / "g.json") << config;
    return parity_check("generate " + (scratch / "g.json").string() + " --dtype fp32 " + more);
  };
  const nlohmann::json small{{"steps", 2}, {"frames", 5}, {"height", 16}, {"width", 32}};
  CHECK(generate(small, "--json " + (scratch / "a.json").string()).status == 0);
  CHECK(nlohmann::json::parse(read_text(scratch / "a.json"))["config"]["steps"] == 2);
  CHECK(generate(small, "--steps 3 --json " + (scratch / "b.json").string()).status == 0);
  CHECK(nlohmann::json::parse(read_text(scratch / "b.json"))["config"]["steps"] == 3);
  const auto refused = [&](nlohmann::json config, const std::string& says) {
    const auto done = generate(config, "");
    CHECK(done.status == 2);
    CHECK_MESSAGE(done.err.find(says) != std::string::npos, done.err);
  };
  refused({{"step", 2}}, "unknown key 'step'"), refused({{"steps", "two"}}, "'steps' is \"two\"");
  CHECK(parity_check("generate no-such-pipeline").err.find("tiny-i2v, tiny-t2v") != std::string::npos);
}

TEST_CASE("generate: a sampler that would step otherwise is refused") {
  const nlohmann::json unipc{
      {"_class_name", "UniPCMultistepScheduler"}, {"use_flow_sigmas", true}, {"flow_shift", 3.0}};
  CHECK(Sampler(unipc, 4).timesteps().numel() == 4);
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    auto other = unipc;
    other[key] = value;
    CHECK_THROWS_WITH_AS(Sampler(other, 4), doctest::Contains(key), Error);
  };
  refused("solver_type", "bh1"), refused("prediction_type", "epsilon"), refused("use_flow_sigmas", false);
  refused("flow_shift", "3"), refused("thresholding", true);
  CHECK_THROWS_WITH_AS(Sampler({{"_class_name", "DDIMScheduler"}}, 4), doctest::Contains("DDIMScheduler"), Error);
  CHECK_THROWS_WITH_AS(PipelineFolder("/nowhere"), doctest::Contains("model_index.json"), Error);
}
