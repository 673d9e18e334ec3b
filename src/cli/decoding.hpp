// How the benches of language models choose words.
#pragma once
#include <CLI/CLI.hpp>

#include "bench/decoding.hpp"

namespace parity::cli {

/// Adds --temperature, --top-k, --top-p and --seed.
void add_sampling(CLI::App& command, DecodingRounds& rounds);

}  // namespace parity::cli
