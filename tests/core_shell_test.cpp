// Command lines out of any text: what a shell makes of them is the text again.
#include "core/shell.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "command.hpp"
#include "core/glob.hpp"

using namespace parity;

namespace {

const std::vector<std::string> kHostileWords{
    "plain", "two words", "it's", "$(touch owned)", "`id`",      "a\"b", "back\\slash", "*?[x]",
    "",      "~",         "#",    "a;b|c&d",        "line\nend", "höhe"};

}  // namespace

TEST_CASE("shell: every word survives bash") {
  for (const std::string& text : kHostileWords) {
    CAPTURE(text);
    for (const std::string& word : {shell_word(text), shell_word_if_needed(text)}) {
      const test::Finished done = test::shell("bash -c " + shell_word("printf %s " + word));
      CHECK(done.status == 0);
      CHECK(done.out == text);
      CHECK(shell_words("x " + word) == std::vector<std::string>{"x", text});
    }
  }
  CHECK(shell_word_if_needed("blocks.0/add.1") == "blocks.0/add.1");
}

TEST_CASE("shell: options are found with their values, in either form") {
  CHECK(options_in("parity-check compare a b --map 'm n' --out x --accept-path=*.ln --mapper y",
                   {"--map", "--accept-path"}) == " --map 'm n' --accept-path '*.ln'");
  CHECK(options_in("parity-check compare a b --map", {"--map"}) == "");
  CHECK(options_in("parity-check compare 'a --map b' c", {"--map"}) == "");
}

TEST_CASE("glob: the pattern for a path matches it and no other") {
  for (const std::string path : {"blocks.0/native_layer_norm.0[1]", "a*b", "a?b", "a\\b", "a,b", "plain"}) {
    CAPTURE(path);
    CHECK(matches_layer(path, pattern_for(path)));
    CHECK_FALSE(matches_layer(path + "x", pattern_for(path)));
  }
  CHECK_FALSE(matches_layer("norm.01", pattern_for("norm.0[1]")));
  CHECK_FALSE(matches_layer("axb", pattern_for("a*b")));
}
