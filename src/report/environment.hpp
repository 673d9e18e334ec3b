// On which machines, with which versions and settings: what explains a difference before any number does.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct EnvironmentRow {
  std::string what;                 // "kernels for"
  std::vector<std::string> values;  // one for each column, "" when not known
  bool differs = false;             // two known values are not the same
};

struct Environment {
  std::vector<std::string> columns;  // "reference", "candidate", "judged here"
  std::vector<EnvironmentRow> rows;
};

/// Of several recordings, each value once. A re-implementation runs here: then there is no third column.
Environment environment(const Report& report);

/// "AMD EPYC, AVX512, torch 2.13.0+cpu, 2 threads" of one column; "" when nothing is known.
std::string machine_text(const Environment& environment, size_t column);
/// "kernels for AVX512 (reference), AVX2 (candidate); threads 4 (reference), 2 (candidate)": what differs; "" when
/// nothing does. Of lists, such as the CPU's features, only what is not on every side.
std::string differing_text(const Environment& environment);

/// Which models and files the two sides are, under the same columns.
std::vector<EnvironmentRow> identity_rows(const Report& report);
/// All else that two single recordings say of themselves: "config.n_layer". For a reader with room.
std::vector<EnvironmentRow> other_settings(const Report& report);

/// "WanOriginal, our transcription of the original", "16 recordings: 6 of diffusers' code, …": what each side is.
std::string reference_text(const Report& report);
std::string candidate_text(const Report& report);
/// The recording of that name, where there are several; else the reference.
Side side_of_recording(const Report& report, const std::string& name);

}  // namespace parity
