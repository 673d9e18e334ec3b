// The pairs with a known answer (reference_dumps/selftest/README.md): which files, and what is wrong in them.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

struct SelftestPair {
  std::string file, reference;  // in the suite's folder
  std::string family, dtype, name;
  bool fault = false;             // false: benign, differs by rounding alone
  std::string diagnosis, module;  // of a fault: its kind, and the first boundary whose own value is wrong
  int call = 0;
};

struct SelftestSuite {
  std::filesystem::path folder;
  std::vector<SelftestPair> pairs;  // those of one reference side by side
};

/// Reads `folder`/MANIFEST.json and checks that every file chosen is there and has the manifest's sha256. `only`:
/// "all", or globs on file names, comma-separated. Throws Error, naming the file, for an unreadable or incomplete
/// manifest, a missing or changed file, a choice that matches nothing, and a whole suite without faults or without
/// benign pairs.
SelftestSuite read_suite(const std::filesystem::path& folder, std::string_view only);

}  // namespace parity
