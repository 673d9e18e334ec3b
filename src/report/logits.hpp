// What a difference in logits means for the words: divergence of the distributions, flips of the most likely word.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// A sentence for each pair of logits that differ and one for the others, for a terminal and for report.html.
std::vector<std::string> logit_lines(const Report& report);
/// A section of report.md; "" where no logits were compared.
std::string markdown_logits(const Report& report);
/// The key "logits" of parity-report/1.
nlohmann::json logits_json(const Report& report);

}  // namespace parity
