#include "cli/sampling.hpp"

namespace parity::cli {

void add_sampling(CLI::App& command, DecodingRounds& rounds) {
  Sampling& sampling = rounds.sampling;
  command.add_option("--temperature", sampling.temperature, "Of the draw; 0: the most likely word")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Words drawn from at most; 0: all")->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "Drawn from the most likely words that sum to this")
      ->capture_default_str();
  command.add_option("--seed", rounds.seed, "Of the draw")->capture_default_str();
}

}  // namespace parity::cli
