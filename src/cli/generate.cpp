// parity-check generate: text or image to video by the C++ models, beside what the reference's pipeline recorded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "cli/command.hpp"
#include "cli/generated_frames.hpp"
#include "cli/generation_config.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "pipeline/blame.hpp"
#include "report/json_values.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

nlohmann::json config_json(const GenerateOptions& o) {
  const auto& g = o.generation;
  return {{"steps", g.steps},         {"guidance", g.guidance}, {"frames", g.frames},     {"height", g.height},
          {"width", g.width},         {"seed", g.seed},         {"teacache", g.teacache}, {"dtype", o.dtype},
          {"vae_dtype", o.vae_dtype}, {"pipeline", o.pipeline}};
}

nlohmann::json comparison_json(const std::optional<StageComparison>& compared) {
  if (!compared) return nullptr;
  nlohmann::json stages = nlohmann::json::array();
  for (const StageError& stage : compared->stages)
    stages.push_back({{"name", stage.name},
                      {"part", stage.part},
                      {"free_rel_l2", value(stage.free)},
                      {"forced_rel_l2", value(stage.forced)},
                      {"share", value(stage.share)}});
  nlohmann::json parts = nlohmann::json::array();
  for (const auto& [part, share] : shares_by_part(*compared)) parts.push_back({{"part", part}, {"share", share}});
  return {{"stages", stages},
          {"blame", parts},
          {"psnr", value(compared->psnr)},
          {"psnr_min", value(compared->psnr_min)},
          {"identical", compared->frame_rms == 0}};
}

void print_comparison(const StageComparison& compared) {
  print("{:24} {:>12} {:>12} {:>8}\n", "stage", "free rel L2", "own rel L2", "share");
  const auto text = [](const std::optional<double>& value) { return value ? fmt::format("{:.3g}", *value) : "–"; };
  for (const StageError& stage : compared.stages)
    print("{:24} {:>12} {:>12} {:>8}\n", stage.name, text(stage.free), text(stage.forced),
          stage.share ? fmt::format("{:.1f} %", 100 * *stage.share) : "–");
  if (compared.psnr)
    print("frames: PSNR {:.2f} dB, the worst {:.2f} dB\n", *compared.psnr, compared.psnr_min.value_or(*compared.psnr));
  else if (compared.frame_rms == 0)
    print("frames: identical\n");
  if (const auto parts = shares_by_part(compared); !parts.empty())
    print("Most of the frames' error comes from {} ({:.0f} %).\n", parts[0].first, 100 * parts[0].second);
}

void check(GenerateOptions& o) {
  if (o.reference.empty() && (o.blame || o.min_psnr))
    throw Error("--blame and --min-psnr compare with a recording: name it with --reference");
  o.generation.precision = o.dtype == "fp64" ? Precision::fp64 : Precision::recorded;
  o.generation.dtype = o.dtype == "fp64" ? at::kFloat : parse_dtype(o.dtype);
  o.generation.vae_dtype = parse_dtype(o.vae_dtype);
  check_frames_place(o.out);
}

void print_generation(const GenerateOptions& o, const std::optional<StageComparison>& compared,
                      const std::vector<int64_t>& reused) {
  if (compared) print_comparison(*compared);
  if (o.generation.teacache > 0)
    print("TeaCache: {} of {} steps reused what the blocks added before{}{}\n", reused.size(), o.generation.steps,
          reused.empty() ? "" : ": ", fmt::format("{}", fmt::join(reused, ", ")));
  if (!o.out.empty()) print("Frames: {}\n", o.out);
}

int generate(GenerateOptions options, const CLI::App& command) {
  complete_from_config(options, command);
  check(options);
  set_threads(options.common, nullptr);
  const auto start = std::chrono::steady_clock::now();
  const PipelineFolder folder(options.pipeline, options.settings);
  const GenerationInputs inputs = read_generation_inputs(options.inputs);
  const auto stages = generation_stages(folder, options.generation);
  std::optional<StageWriter> writer;
  if (!options.record.empty()) writer.emplace(options.record, config_json(options));
  StageHooks hooks;
  if (writer) hooks.made = [&](const std::string& name, at::Tensor value) { return writer->add(name, value), value; };
  std::vector<int64_t> reused;
  hooks.reused = [&](int64_t step) { reused.push_back(step); };
  ShareBar bar("generating", options.common.quiet);
  at::Tensor video;
  std::optional<StageComparison> compared;
  if (options.reference.empty())
    video = generate_video(folder, inputs, options.generation, hooks, std::ref(bar));
  else
    compared = named({options.reference}, [&] {
      return compare_stages(folder, inputs, options.generation, read_stages(options.reference, stages), options.blame,
                            hooks, video, std::ref(bar));
    });
  if (writer) writer->close();
  write_frames(options.out, frames_of(video), options.rate);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.common.json.empty())
    write_result(options.common.json, {{"schema", "parity-generate/1"},
                                       {"seconds", seconds},
                                       {"config", config_json(options)},
                                       {"frames", options.out},
                                       {"reused_steps", reused},
                                       {"comparison", comparison_json(compared)}});
  if (!options.common.quiet) print_generation(options, compared, reused);
  const bool below = options.min_psnr && compared->psnr_min && *compared->psnr_min < *options.min_psnr;
  if (below && !options.common.quiet) print("FAIL: the worst frame's PSNR is below {} dB\n", *options.min_psnr);
  return below ? 1 : 0;
}

void add_sizes(CLI::App& command, GenerateOptions& o) {
  command.add_option("--steps", o.generation.steps, "Denoising steps")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--guidance", o.generation.guidance, "Classifier-free guidance; 1: none")->capture_default_str();
  command
      .add_option("--teacache", o.generation.teacache,
                  "Threshold of TeaCache: steps whose time embedding moved less reuse what the blocks added before; 0: "
                  "none. With --reference of a full run the table says what it does, step by step")
      ->check(CLI::NonNegativeNumber)
      ->type_name("X")
      ->capture_default_str();
  command.add_option("--frames", o.generation.frames)->capture_default_str();
  command.add_option("--height", o.generation.height)->capture_default_str();
  command.add_option("--width", o.generation.width)->capture_default_str();
  command.add_option("--seed", o.generation.seed, "Of the noise: torch.Generator().manual_seed(SEED)'s, bit for bit")
      ->capture_default_str();
  command.add_option("--dtype", o.dtype, "Of the transformer and the text encoder; fp64: of everything")
      ->check(CLI::IsMember({"bf16", "fp32", "fp64"}))
      ->capture_default_str();
  command.add_option("--vae-dtype", o.vae_dtype, "Of the autoencoder and the image encoder")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand(
      "generate", "Text or image to video by the C++ models, stage by stage beside the reference's pipeline");
  command
      ->add_option(
          "config", options->config,
          "Folder of a Wan2.1 pipeline as diffusers' save_pretrained writes it or as the original repository publishes "
          "it (.pth), a JSON file that names one and how to generate, or an embedded one: tiny-t2v, tiny-i2v")
      ->required()
      ->type_name("CONFIG");
  command
      ->add_option("--inputs", options->inputs,
                   "Tensors input_ids, attention_mask, negative_input_ids, negative_attention_mask (of a tokenizer), "
                   "image, pixel_values (of the image processors), noise (.safetensors, .npz)")
      ->check(existing_file())
      ->type_name("FILE");
  add_sizes(*command, *options);
  command->add_option("-o,--out", options->out, "Frames: FILE.mp4, FILE.npy (fp32 in [0, 1]), or a folder of PNG")
      ->type_name("PLACE");
  command->add_option("--rate", options->rate, "Frames a second of the .mp4")->capture_default_str();
  command->add_option("--record", options->record, "Write what every stage and step gave as a recording")
      ->type_name("FILE");
  command
      ->add_option("--reference", options->reference,
                   "Recording of the reference's pipeline: each stage is compared, free and on the reference's values")
      ->check(existing_file())
      ->type_name("FILE");
  command->add_flag("--blame", options->blame, "Also each stage's share of the frames' error, a generation a stage");
  command->add_option("--min-psnr", options->min_psnr, "Exit status 1 when a frame's PSNR against --reference is below")
      ->type_name("DB");
  add_common(*command, options->common);
  command->callback(
      [options, command, &action] { action = [options, command] { return generate(*options, *command); }; });
}

}  // namespace parity::cli
