#include "cli/decoding.hpp"

#include <ATen/Parallel.h>

namespace parity::cli {

void add_decoding(CLI::App& command, DecodingRounds& rounds) {
  const auto count = [&command](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->check(number_from(1))->capture_default_str();
  };
  count("--prompt", rounds.prompt, "Tokens given at once");
  count("--tokens", rounds.tokens, "Tokens decoded");
  count("--repeats", rounds.repeats, "Rounds after the first, which is not counted");
  Sampling& sampling = rounds.sampling;
  command.add_option("--temperature", sampling.temperature, "Of the draw; 0: the most likely word")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Words drawn from at most; 0: all")->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "Drawn from the most likely words that sum to this")
      ->capture_default_str();
  command.add_option("--seed", rounds.seed, "Of the draw")->capture_default_str();
}

nlohmann::json decoding_json(const Decoding& decoding, const DecodingRounds& rounds) {
  return {{"prompt", rounds.prompt},
          {"tokens", rounds.tokens},
          {"threads", at::get_num_threads()},
          {"first_seconds", decoding.rounds.first},
          {"seconds", decoding.rounds.seconds},
          {"tokens_per_second", decoding.tokens_per_second()},
          {"prompt_milliseconds", decoding.prompt_milliseconds},
          {"exponent", decoding.exponent(rounds.prompt)},
          {"milliseconds_by_position", decoding.milliseconds}};
}

}  // namespace parity::cli
