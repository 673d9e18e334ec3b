// Command lines that a report prints, so that they can be pasted into a shell whatever the files are called.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

/// One word of a POSIX shell, in quotes: nothing in it means anything to the shell.
std::string shell_word(std::string_view text);
/// The same without quotes where none are needed.
std::string shell_word_if_needed(std::string_view text);
/// The words of such a line, quotes taken off; of an unfinished quote the rest.
std::vector<std::string> shell_words(std::string_view line);

/// A `--layer` pattern (core/glob.hpp) that matches `path`, whatever is in it: a `[` or `*` of its own stands for
/// itself.
std::string pattern_for(std::string_view path);

/// Those of `options` ("--map") that `line` gives with a value, once for each time: " --map 'a b' --accept-path
/// '*.ln'".
std::string options_in(std::string_view line, std::initializer_list<std::string_view> options);

}  // namespace parity
