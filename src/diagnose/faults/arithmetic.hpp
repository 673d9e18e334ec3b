// Arithmetic below the cast: what engines compute with that no dtype of the program shows. Operands of products rounded
// on the way in, sums taken in half width, cached keys and values or weights held in a narrower format, functions
// approximated. Each change is one more replay of an op; all are tried only where a row stands out and no named fault
// explains it. A fault's name ("kv cache: fp16") is also what --accept-path takes.
#pragma once
#include <string_view>
#include <vector>

#include "diagnose/faults/catalogue.hpp"

namespace parity {

/// The changes of a stretch of program: a list is tried when none of those before it explains the difference. The same
/// change at all ops of the stretch comes beside that at each. They deviate from replay number `lane`.
std::vector<Hypotheses> arithmetic_changes(const ProgramIndex& program, const std::vector<size_t>& ops, size_t lane);

// The families, as those of the catalogue.
void bias_order(const ProgramIndex& program, int index, Hypotheses& to);
void product_inputs(const ProgramIndex& program, int index, Hypotheses& to);
void accumulation(const ProgramIndex& program, int index, Hypotheses& to);
void narrow_results(const ProgramIndex& program, int index, Hypotheses& to);
void narrow_weights(const ProgramIndex& program, int index, Hypotheses& to);
void cached_keys_and_values(const ProgramIndex& program, int index, Hypotheses& to);
void attention_steps(const ProgramIndex& program, int index, Hypotheses& to);
void attention_probabilities(const ProgramIndex& program, int index, Hypotheses& to);
void approximated_functions(const ProgramIndex& program, int index, Hypotheses& to);
void flushed_denormals(const ProgramIndex& program, int index, Hypotheses& to);

/// What families are written with.
void add_arithmetic(Hypotheses& to, const ProgramIndex& program, int index, std::string fault, std::string what,
                    Rewrite rewrite);
/// Beside exact arithmetic: the arguments as floats, so that LibTorch's own kernels run and a port on the same library
/// has the same bits. Beside other replays (a declared change is put into all of them) nothing happens.
void as_floats(OpCall& call);
/// What a result is rounded to: the replay's dtype there.
at::ScalarType result_dtype(const OpCall& call);

/// A stored weight, seen through views.
bool is_weight(const ProgramIndex& program, int64_t id);
/// Names of the operands of a product; empty when the op is none.
struct Operands {
  std::string_view left, right;
};
Operands operands_of(const Op& op);
/// The product without what the op adds, as the replay computes and rounds it.
at::Tensor product_alone(OpCall& call);
/// What the op adds is added to a product, and the sum rounded.
Results with_addend(const OpCall& call, at::Tensor product);

}  // namespace parity
