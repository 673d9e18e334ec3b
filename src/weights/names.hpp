// What a parameter's name says it is supposed to hold. Content says what it does hold (weights/content.hpp); a fault is
// where the two disagree.
#pragma once
#include <string>
#include <vector>

#include "pair/tokens.hpp"

namespace parity {

struct ParameterName {
  std::string path, module, leaf;  // "blocks.3.attn.q.kernel": "blocks.3.attn.q" and "kernel"
  std::string kind;   // "weight" for weight, kernel, scale, …; "bias"; "mean", "variance"; "" for any other
  std::string plain;  // module and kind, without what all names of its side begin with
  NameTokens tokens;  // of the module (of the whole path when the kind is "")
  std::string form;   // all but the block numbers, canonical words: equal for the same one of every block
  std::string module_form, parent_form;  // of the module, and of the module that holds it
};

/// All names of one side.
std::vector<ParameterName> parameter_names(const std::vector<std::string>& paths);

/// The module that a parameter belongs to: its path up to the last dot or slash.
std::string owner_of(const std::string& path);

/// Words that exclude each other, q and k say, stand in the two names: no likeness makes these the same parameter.
bool roles_differ(const ParameterName& a, const ParameterName& b);
/// "q", "k", "v", "mean" … of a name, for messages; "" when it has none.
std::string role_of(const ParameterName& name);

/// 0 … 1: of the modules' words, kinds included.
double likeness(const ParameterName& a, const ParameterName& b);

/// Is it, by its name, computed and not trained (rope tables, masks, position ids)? Such a tensor needs no counterpart.
bool computed_by_name(const std::string& path);

}  // namespace parity
