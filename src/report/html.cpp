// report.html: the whole report as one file for a browser, on a phone or a desk, light or dark, without a network. This
// file puts it together; what it looks like is src/report/page.
#include "report/html.hpp"

#include <fmt/format.h>

#include <charconv>

#include "report/markup.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

// The digest of a content policy: base64 of the bytes that `hex` writes.
std::string policy_digest(std::string_view hex) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 6) {  // three bytes are four digits
    uint32_t bits = 0;
    const std::string_view part = hex.substr(i, 6);
    std::from_chars(part.data(), part.data() + part.size(), bits, 16);
    const size_t bytes = part.size() / 2;
    bits <<= 8 * (3 - bytes);
    for (size_t k = 0; k < 4; ++k) out += k > bytes ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

// No request leaves the page, and no script runs but the program's own, whatever a path in a recording says.
std::string content_policy(const HtmlPage& page) {
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'",
      policy_digest(page.script_sha256));
}

// JSON inside a script element: without '<' it can neither end that nor open another.
std::string inside_script(std::string text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string text_of_data(const nlohmann::json& data) {
  return inside_script(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Where most of 5,000 rows are red, their lists would take 10 MB: then a row shows fewer, and the page says so. What
// is left is for pictures.
std::string data_of_page(const Report& report) {
  constexpr size_t kSpace = 4'600'000;      // bytes beside the chart library, of the 5 MB that a page may have
  constexpr size_t kForFrames = 1'000'000;  // of these, kept free where there are clips: three pictures of noise
  nlohmann::json data;
  std::string text;
  for (const size_t most : {8, 3, 1}) {
    data = html_data(report, most);
    text = text_of_data(data);
    if (text.size() <= kSpace - (report.video ? kForFrames : 0)) break;
  }
  if (!report.video || text.size() >= kSpace) return text;
  add_pictures(data["video"], *report.video, kSpace - text.size());
  return text_of_data(data);
}

std::string filled(std::string_view skeleton, const std::map<std::string_view, std::string_view>& marks) {
  std::string out;
  for (size_t at = 0; at < skeleton.size();) {
    const size_t begin = skeleton.find('@', at), end = skeleton.find('@', begin == skeleton.npos ? begin : begin + 1);
    if (end == skeleton.npos) return out.append(skeleton.substr(at));
    const auto found = marks.find(skeleton.substr(begin + 1, end - begin - 1));
    out.append(skeleton.substr(at, (found == marks.end() ? end : begin) - at));
    if (found != marks.end()) out.append(found->second);
    at = found == marks.end() ? end : end + 1;
  }
  return out;
}

}  // namespace

void write_html(const Report& report, const std::filesystem::path& file) {
  const HtmlPage& page = html_page();
  const std::string data = data_of_page(report);
  const std::string& model = report.reference.model.empty() ? report.candidate.model : report.reference.model;
  const std::string title = xml(model.empty() ? "Parity report" : fmt::format("Parity report: {}", model));
  write_file(file, filled(page.skeleton, {{"STYLE", page.style},
                                          {"SCRIPT", page.script},
                                          {"DATA", data},
                                          {"POLICY", content_policy(page)},
                                          {"TITLE", title}}));
}

}  // namespace parity
