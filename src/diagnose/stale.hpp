// Values that a port wrote before: a buffer not refreshed, a repeated dump, another layer's result.
#pragma once
#include <ATen/ATen.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace parity {

/// Do they differ by no more than roundings of `dtype`, and of the sums of a row? In the length that both have, and
/// where they are finite; fp32, flat; integers are not rounded.
bool same_but_for_rounding(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype);

/// Remembers a few bytes of each tensor, never the tensor.
class StaleRegistry {
 public:
  /// The place ("blocks.0.norm1", "call 0 of blocks.0.norm1") whose earlier value `candidate` repeats bitwise where the
  /// reference's own values (`reference`: the reference's run on its own inputs) differ by more than a rounding (one
  /// timestep embedded once for each of two batches is no stale value); "" when there is none. A part
  /// of an earlier call's value counts when it is its beginning. Constant tensors and those under 16 elements repeat
  /// nothing. Remembers both.
  /// `inputs`: paths that the value is computed from; what equals one of these passed through (a sublayer without its
  /// residual), it is not stale.
  std::string seen_before(const std::string& path, int call, const at::Tensor& candidate, const at::Tensor& reference,
                          const std::set<std::string>& inputs);

  /// The place whose value in the reference's own run is what `candidate` has but for rounding, where the right one is
  /// at least ten times further away: for ports that did not record the older value.
  std::string like_reference(const std::string& path, int call, const at::Tensor& candidate,
                             const at::Tensor& right) const;
  /// Remembers the reference's own value there, where `seen_before` is not asked; its first elements in fp32.
  at::Tensor remember(const std::string& path, int call, const at::Tensor& reference);

 private:
  struct Seen {
    std::string path;
    int call;
    int64_t elements;
    std::string head;              // the candidate's first elements, raw bytes
    size_t whole;                  // hash of all of them
    at::Tensor reference, spread;  // the reference's first elements, and as many of all over it; fp32
  };
  std::unordered_map<std::string, std::vector<Seen>> by_begin_;  // of the first 16 elements
  struct Own {
    std::string path;
    int call;
    at::Tensor head;  // fp32
  };
  std::map<std::vector<int64_t>, std::vector<Own>> own_;  // by shape
};

}  // namespace parity
