// Map files: which candidate value is which reference value (design 1.3), one rule a line:
//
//   REFERENCE = CANDIDATE [split(axis,i,n)] [slice(axis,begin,length)] [view(2,-1,8)] [perm(0,2,1,3)] [reshape(2,-1)]
//
// `*` matches any text, `{name}` one run without '.' and '/'; both carry over to the right-hand side (`*` in order,
// `{name}` by name). In whatever order they are written, the steps are taken in this one: `split` takes part i of n
// along the candidate's `axis` (`slice`: a part of any length), `view` reads what is left, in order, as another shape,
// `perm` permutes the axes into the reference's, `reshape` reads the result as another shape. -1 once stands for the
// length that fits. `#` begins a comment. Later lines win.
//
// A rule holds for all calls of a path, each with the candidate's call of the same number, unless its left side says
// `call(3)`, for that one alone, or `call({n})`, for each under its number: "lm_head call({n}) = step{n}.logits". The
// candidate's tensor is then its call 0, unless the right side says another: "lm_head call(0) = logits call(1)".
//
// A rule may also name weights ("h.{i}.attn.q.weight = layers_{i}.q.kernel perm(1,0)") and modules that only hold
// weights, as `parity-check weights --save-map` writes them; split or slice on the left takes a part of the reference's
// weight ("h.{i}.attn.c_attn.weight split(1,0,3) = layers_{i}.q.kernel").
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parity {

/// A tensor in another layout; undefined where it does not fit, with the reason.
struct Fitted {
  at::Tensor tensor;
  std::string problem;
};

/// How a candidate tensor becomes comparable with the reference's.
struct Layout {
  std::vector<int64_t> permutation;             // of the candidate's axes; empty: as it is
  std::optional<std::array<int64_t, 3>> split;  // axis, part, parts
  std::optional<std::array<int64_t, 3>> slice;  // axis, begin, length
  std::vector<int64_t> view, reshape;           // shape before, shape after the permutation; empty: as it is

  bool as_it_is() const { return permutation.empty() && !split && !slice && view.empty() && reshape.empty(); }
  /// Candidate's layout -> reference's (a view where strides allow). `to_` throws Error where `fit_` says the problem.
  Fitted fit_reference(const at::Tensor& candidate) const;
  at::Tensor to_reference(const at::Tensor& candidate) const;
  /// The same where the result has the reference's shape; nullopt elsewhere.
  std::optional<at::Tensor> as_shape(const at::Tensor& candidate, at::IntArrayRef shape) const;
  /// Reference's layout -> candidate's (a view where strides allow). Does not fit with split or slice: a part alone
  /// cannot be handed back. With `view` or `reshape` it takes what is told the candidate's shape.
  Fitted fit_candidate(const at::Tensor& reference, at::IntArrayRef candidate_shape) const;
  at::Tensor to_candidate(const at::Tensor& reference) const;
  at::Tensor to_candidate(const at::Tensor& reference, at::IntArrayRef candidate_shape) const;
  /// The steps as a map file writes them: "split(-1,0,3) perm(1,0)"; "" when there is nothing to do.
  std::string text() const;
};

/// " call(3)", as a rule says behind a name which of its calls it means.
std::string call_text(int call);

class NameMap {
 public:
  struct Target {
    std::string candidate;
    Layout layout;
    int line = 0;
    int call = 0;          // the candidate's
    bool of_call = false;  // by a rule that says which calls it holds for
  };

  /// What a rule may name: a value of one call, or a weight, which has none.
  struct Name {
    std::string path;
    std::optional<int> call = {};
  };

  NameMap() = default;
  /// Throws Error naming `origin` and the line for a rule that does not parse.
  static NameMap parse(std::string_view text, const std::string& origin);

  /// The last rule that matches, applied; nullopt when none does.
  std::optional<Target> find(const std::string& reference, std::optional<int> call = std::nullopt) const;

  /// Of every rule that takes a part of `reference` (a fused weight), in their order; `find` never uses those.
  std::vector<Target> find_parts(const std::string& reference) const;

  /// Throws Error naming the first rule that `find` never used for any of `references`: a misspelt rule must not pass
  /// silently.
  void require_all_used(const std::vector<Name>& references) const;

 private:
  struct Rule {
    std::string text, prefix, target;  // prefix: literal text before the first wildcard, a cheap first test
    std::regex pattern;
    std::vector<std::string> captures;  // "*" or the name, by group
    Layout layout;
    bool part = false;     // split or slice on the left
    bool of_call = false;  // `pattern` and `prefix` are of "path call(3)"
    int line = 0;
  };
  static Rule parse_rule(const std::string& text, const std::string& where);
  std::optional<Target> apply(const Rule& rule, const Name& reference) const;

  std::vector<Rule> rules_;
  std::string origin_;
};

/// The candidate's name and call for a value of the reference: what the rule found for it says, its own without one.
std::pair<std::string, int> counterpart_of(const std::optional<NameMap::Target>& target, const std::string& path,
                                           int call);

/// The names of weights and of the modules that hold them: what rules may name besides boundaries.
std::vector<NameMap::Name> weights_and_owners(const std::vector<std::string>& weights);

}  // namespace parity
