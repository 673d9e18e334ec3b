// Parts of parity-report/1 that report.html carries too. Private to src/report.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "core/result.hpp"

namespace parity {

nlohmann::json findings_json(const Report& report);       // by cause
nlohmann::json discriminator_json(const Report& report);  // null where nothing splits
nlohmann::json next_json(const Report& report);
nlohmann::json whole_json(const std::optional<WholeProgram>& whole);
nlohmann::json since_baseline_json(const std::optional<SinceBaseline>& since);
/// The section "video"; of several pairs with what they have in common. Null without clips.
nlohmann::json video_section(const VideoReport* report);

}  // namespace parity
