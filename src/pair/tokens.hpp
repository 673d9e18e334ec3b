// Names of layers in different code bases, made comparable: words in one spelling, numbers in order.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

/// "blocks.3.attn1.to_q" and "layers_3/SelfAttention/query" both become block # attn self q, with number 3.
struct NameTokens {
  struct Token {
    std::string text;
    double weight = 1;  // words that say little, and numbers, less
    bool operator<(const Token& other) const { return text < other.text; }
  };
  std::vector<Token> words;  // sorted; the whole path
  std::vector<Token> leaf;   // sorted; its last telling component
  std::vector<int> blocks;   // numbers of blocks (layers), outermost first
  std::string shape;         // all of it but `blocks`: equal for the same layer of every block
  bool op = false;           // an op's result, "blocks.0/add.1", not a module's
};

NameTokens name_tokens(std::string_view path);

/// 0 … 1 of two names without their block numbers: shared weight over total weight, 0.6 of it for the whole path and
/// 0.4 for the leaf.
double name_similarity(const NameTokens& a, const NameTokens& b);

}  // namespace parity
