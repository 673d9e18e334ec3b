// What the benches of language models take and tell alike.
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/decoding.hpp"

namespace parity::cli {

/// Adds --prompt, --tokens, --repeats, --temperature, --top-k, --top-p and --seed.
void add_decoding(CLI::App& command, DecodingRounds& rounds);

/// Rounds, threads and times: keys of the JSON result beside the model's own.
nlohmann::json decoding_json(const Decoding& decoding, const DecodingRounds& rounds);

}  // namespace parity::cli
