// What is measured about a pair of logits: two distributions over the same words, token by token.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parity {

/// A token whose most likely word is another one on the candidate's side.
struct TopFlip {
  std::vector<int64_t> token;  // index into all axes but the last
  int64_t reference_word = 0, candidate_word = 0;
  double margin = 0;   // of the reference's first word over its second, in logits
  double allowed = 0;  // 2 ULP of the first logit + 2 rms error of the token's logits: a margin below it is a tie
};

/// p = softmax(reference), q = softmax(candidate), both in fp64; natural logarithms. Tokens with a NaN or +Inf on
/// either side are counted and left out of the rest, which is nullopt where none is left.
struct LogitStats {
  int64_t tokens = 0, words = 0, not_finite = 0;
  std::optional<double> kl_mean, kl_p99,
      kl_max;  // KL(p || q) = sum p (log p - log q) of a token (p99: nearest rank); +Inf where q is 0
  std::vector<int64_t> worst_token;     // of kl_max
  std::optional<double> log_prob_rms;   // of log q - log p of the reference's most likely word
  std::optional<double> same_top;       // share of tokens whose most likely word is the reference's
  int64_t flips = 0, flips_beyond = 0;  // the other tokens; those of them whose margin is no tie
  std::optional<TopFlip> first_flip;    // in order; beyond the margin, if there is one
  std::optional<double> top5_overlap;   // mean share of the reference's five words among the candidate's
};

/// The logits of one run of a model, beside the reference's: free-running.
struct LogitPair {
  std::string reference, path, candidate_path, dtype;  // as in the row of the same place
  LogitStats stats;
  int call = 0;  // of the module
};

}  // namespace parity
