// A tensor as rows along one axis: which of its rows are which of another's. Finds fused, split, stacked and permuted
// tensors without trying them out.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "weights/content.hpp"

namespace parity {

/// Sums of x and x^2 of every row along an axis; axis -1: the whole tensor is one row.
struct RowSums {
  int64_t width = 0;  // elements a row
  std::vector<float> sum, square;
  size_t count() const { return sum.size(); }
};
RowSums row_sums(const at::Tensor& tensor, int64_t axis);

/// May row i of `a` be row j of `b`, either rounded to bf16?
bool rows_alike(const RowSums& a, size_t i, const RowSums& b, size_t j);

/// Where `part` begins among the rows of `whole`, nine of ten rows being alike (a faulty row must not hide it).
std::optional<int64_t> find_rows(const RowSums& whole, const RowSums& part);

/// For each slice of `reference` along `axis` the slice of `candidate` (same shape) that is nearest to it, told by
/// random projections; nullopt when some has none within what rounding explains, or when all stand in place. To be
/// checked.
std::optional<std::vector<int64_t>> row_permutation(const at::Tensor& reference, const at::Tensor& candidate,
                                                    int64_t axis);

/// The share of `part`'s rows (axis 0) that are rows of `whole`, in any order: interleaved heads of a fused tensor.
double rows_found(const at::Tensor& part, const at::Tensor& whole);

/// "blocks of 64 rows: 0 1 2 3 come as 2 0 1 3", "rows in reverse", "rows interleaved: …".
std::string permutation_text(const std::vector<int64_t>& permutation, const std::string& rows);

/// The factor of each slice along `axis`, where each of the candidate's is a multiple of the reference's up to a
/// relative L2 of `rest`; empty where one is none, or has fewer than eight elements to say so.
std::vector<double> slice_factors(const at::Tensor& reference, const at::Tensor& candidate, int64_t axis, double rest);

}  // namespace parity
