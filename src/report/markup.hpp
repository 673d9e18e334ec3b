// Text that came out of files (paths, messages, model names) is hostile (core/plain.hpp): it must not break a table,
// open a tag or call somebody by name either. And how numbers look in tables.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plain.hpp"

namespace parity {

/// For an XML attribute or element.
std::string xml(std::string_view text);
/// Running text in Markdown (GitHub's flavour), in a table cell or not; no mention, link or tag comes to life.
std::string markdown(std::string_view text);
/// A name as code in Markdown, in a table cell or not.
std::string markdown_code(std::string_view text);

/// Three significant digits; "–" for a number that does not exist.
std::string number(std::optional<double> value);
/// Of equal elements: "41 %"; "100 %" only when all are equal.
std::string share(std::optional<double> value);
/// "12×64", "scalar" for no dimensions.
std::string shape_text(const std::vector<int64_t>& shape);

/// At most about so many bytes of a text, with "…" when there is more; no character is cut.
std::string shortened_text(const std::string& text, size_t most);

/// Columns of a text table: pads with spaces by characters, not bytes.
std::string pad_right(std::string_view text, size_t width);
std::string pad_left(std::string_view text, size_t width);

}  // namespace parity
