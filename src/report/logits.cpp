#include "report/logits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/json_values.hpp"
#include "report/markdown_parts.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

using nlohmann::json;

std::string place_of(const LogitPair& pair) {
  std::string path = pair.path.empty() ? "the model's result" : pair.path;
  if (pair.call > 0) path += fmt::format(" call {}", pair.call);
  return (pair.reference.empty() ? "" : pair.reference + ": ") + path + ", " + pair.dtype;
}

std::string flips_text(const LogitStats& s) {
  if (s.flips == 0) return "the same most likely word everywhere";
  std::string out = fmt::format("{} of {} tokens have another most likely word, {} of them beyond the margin of a tie",
                                s.flips, s.tokens - s.not_finite, s.flips_beyond);
  const TopFlip& flip = *s.first_flip;
  return out + fmt::format(" (first: token [{}], word {} becomes {}, led by {:.3g}, a tie below {:.3g})",
                           fmt::join(flip.token, ", "), flip.reference_word, flip.candidate_word, flip.margin,
                           flip.allowed);
}

json flip_json(const std::optional<TopFlip>& flip) {
  if (!flip) return nullptr;
  return {{"token", flip->token},
          {"reference_word", flip->reference_word},
          {"candidate_word", flip->candidate_word},
          {"margin", value(flip->margin)},
          {"allowed", value(flip->allowed)}};
}

}  // namespace

std::vector<std::string> logit_lines(const Report& report) {
  std::vector<std::string> out;
  size_t equal = 0;
  for (const LogitPair& pair : report.logits) {
    const LogitStats& s = pair.stats;
    if (s.kl_max == 0. && s.not_finite == 0) {
      ++equal;
      continue;
    }
    std::string line = fmt::format("logits ({}): KL mean {}, p99 {}, {}; top-5 overlap {}", place_of(pair),
                                   number(s.kl_mean), number(s.kl_p99), flips_text(s), share(s.top5_overlap));
    if (s.not_finite > 0) line += fmt::format("; {} of {} tokens without finite logits", s.not_finite, s.tokens);
    out.push_back(std::move(line));
  }
  if (equal > 0)
    out.push_back(fmt::format("logits: the same distribution in {} of {} runs", equal, report.logits.size()));
  return out;
}

std::string markdown_logits(const Report& report) {
  if (report.logits.empty()) return "";
  std::string out = "## Logits\n\n";
  out += table_row({"logits", "tokens", "KL mean", "KL p99", "KL max", "log p, rms change", "same most likely word",
                    "flips beyond a tie", "top-5 overlap"});
  out += table_row({"---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:"});
  for (const LogitPair& pair : report.logits) {
    const LogitStats& s = pair.stats;
    out += table_row({markdown(place_of(pair)), std::to_string(s.tokens), number(s.kl_mean), number(s.kl_p99),
                      number(s.kl_max), number(s.log_prob_rms), share(s.same_top),
                      fmt::format("{} of {}", s.flips_beyond, s.flips), share(s.top5_overlap)});
  }
  out +=
      "\nFree-running, in nats. *KL*: of the candidate's distribution from the reference's. *A tie*: the reference's "
      "first word leads its second by no more than 2 ULP and 2 rms errors of the token's logits.\n\n";
  for (const LogitPair& pair : report.logits)
    if (pair.stats.flips > 0)
      out += fmt::format("- {}: {}\n", markdown(place_of(pair)), markdown(flips_text(pair.stats)));
  return out + "\n";
}

json logits_json(const Report& report) {
  json out = json::array();
  for (const LogitPair& pair : report.logits) {
    const LogitStats& s = pair.stats;
    out.push_back({{"reference", plain(pair.reference)},
                   {"path", plain(pair.path)},
                   {"call", pair.call},
                   {"candidate_path", plain(pair.candidate_path)},
                   {"dtype", plain(pair.dtype)},
                   {"tokens", s.tokens},
                   {"words", s.words},
                   {"not_finite", s.not_finite},
                   {"kl_mean", value(s.kl_mean)},
                   {"kl_p99", value(s.kl_p99)},
                   {"kl_max", value(s.kl_max)},
                   {"worst_token", s.worst_token},
                   {"log_prob_rms", value(s.log_prob_rms)},
                   {"same_top", value(s.same_top)},
                   {"flips", s.flips},
                   {"flips_beyond", s.flips_beyond},
                   {"first_flip", flip_json(s.first_flip)},
                   {"top5_overlap", value(s.top5_overlap)}});
  }
  return out;
}

}  // namespace parity
