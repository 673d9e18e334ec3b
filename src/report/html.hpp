// Parts of report.html. Private to src/report.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/plain.hpp"
#include "core/result.hpp"

namespace parity {

/// The page's sources (src/report/page) and the chart library, carried inside the program by CMake.
struct HtmlPage {
  std::string_view skeleton;       // with the marks @STYLE@, @SCRIPT@, @DATA@, @POLICY@, @TITLE@
  std::string_view style, script;  // script: the library and ours
  std::string_view script_sha256;  // in hex; the content policy names it, so that no other script ever runs
};
const HtmlPage& html_page();

/// What the page shows of a report: everything, by column, numbers rounded to what is read. See page/data.js. `most`:
/// so many explanations and worst elements of a row.
nlohmann::json html_data(const Report& report, size_t most);
/// Its parts on machines, on causes and on clips (null without any).
nlohmann::json html_environment(const Report& report);
nlohmann::json html_causes(const Report& report);
nlohmann::json html_video(const VideoReport* video);
/// The worst frames as data into html_video's, as many as `room` bytes hold.
void add_pictures(nlohmann::json& clips, const VideoReport& video, size_t room);

/// Rounded to so many significant digits. null: there is no such number; "nan", "inf".
inline constexpr int kShownDigits = 5, kNearOneDigits = 10;  // a share of .999998 must not become 1
nlohmann::json brief(std::optional<double> number, int digits = kShownDigits);

/// Its part on rows. Texts are numbers into `strings`.
class HtmlStrings;
nlohmann::json html_ops(const Report& report, size_t most, HtmlStrings& strings);

/// Texts that repeat (kinds, origins of limits, diagnoses) once each.
class HtmlStrings {
 public:
  /// The place of `text`, made plain (core/plain.hpp).
  int64_t operator()(std::string_view text) { return as_is(plain(text)); }
  int64_t as_is(std::string text);
  nlohmann::json take() { return std::move(list_); }

 private:
  std::map<std::string, int64_t, std::less<>> places_;
  nlohmann::json list_ = nlohmann::json::array();
};

}  // namespace parity
