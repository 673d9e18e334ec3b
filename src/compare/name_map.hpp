// Map files: which candidate value is which reference value (design 1.3), one rule a line:
//
//   REFERENCE = CANDIDATE [perm(0,2,1,3)] [split(axis,i,n)]     # comment
//
// `*` matches any text, `{name}` one run without '.' and '/'; both carry over to the right-hand side (`*` in order,
// `{name}` by name). `perm` permutes the candidate's axes into the reference's; `split` takes part i of n along the
// candidate's `axis` first. Later lines win.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

/// How a candidate tensor becomes comparable with the reference's.
struct Layout {
  std::vector<int64_t> permutation;             // of the candidate's axes; empty: as it is
  std::optional<std::array<int64_t, 3>> split;  // axis, part, parts

  /// Candidate's layout -> reference's (a view). Throws Error when the axes do not fit.
  at::Tensor to_reference(const at::Tensor& candidate) const;
  /// Reference's layout -> candidate's (a view). Throws Error for a split: a part alone cannot be handed back.
  at::Tensor to_candidate(const at::Tensor& reference) const;
};

class NameMap {
 public:
  struct Target {
    std::string candidate;
    Layout layout;
    int line = 0;
  };

  NameMap() = default;
  /// Throws Error naming `origin` and the line for a rule that does not parse.
  static NameMap parse(std::string_view text, const std::string& origin);

  /// The last rule that matches, applied; nullopt when none does.
  std::optional<Target> find(const std::string& reference) const;

  /// Throws Error naming the first rule that `find` never used for any of `references`: a misspelt rule must not pass
  /// silently.
  void require_all_used(const std::vector<std::string>& references) const;

 private:
  struct Rule {
    std::string text, prefix, target;  // prefix: literal text before the first wildcard, a cheap first test
    std::regex pattern;
    std::vector<std::string> captures;  // "*" or the name, by group
    Layout layout;
    int line = 0;
  };
  static Rule parse_rule(const std::string& text, const std::string& where);
  std::optional<Target> apply(const Rule& rule, const std::string& reference) const;

  std::vector<Rule> rules_;
  std::string origin_;
};

/// Does `path` match a `--layer` pattern: "all", or globs (`*`, `?`) separated by commas.
bool matches_layer(std::string_view path, std::string_view pattern);

}  // namespace parity
