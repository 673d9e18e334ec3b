// Golden files: what a report looked like when somebody last looked at it. `PARITY_UPDATE_GOLDEN=1 parity-tests
// -tc="report*"` rewrites them.
#pragma once
#include <filesystem>
#include <string>

namespace parity::test {

/// Equal to tests/golden/`name`, or a failed check that shows the first differing line.
void check_golden(const std::string& name, const std::string& text);
/// An empty folder of this test's own.
std::filesystem::path scratch_folder(const std::string& name);
std::string read(const std::filesystem::path& file);

}  // namespace parity::test
