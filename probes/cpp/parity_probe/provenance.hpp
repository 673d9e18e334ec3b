// Where a recording comes from: machine and command, as JSON (FORMAT.md, `provenance`). Linux; elsewhere what cannot be
// found out is "".
#pragma once
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "text.hpp"

namespace parity::probe {

// Value of the first line of /proc/cpuinfo that begins with one of `keys`.
inline std::string cpuinfo(std::initializer_list<std::string_view> keys) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    for (const std::string_view key : keys)
      if (std::string_view(line).substr(0, key.size()) == key && line.find(": ") != std::string::npos)
        return line.substr(line.find(": ") + 2);
  return "";
}

// The instruction sets that make libraries choose other kernels, and so other roundings; as a JSON list.
inline std::string cpu_flags() {
  static const std::set<std::string> wanted{
      "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx512f",  "avx512bw",
      "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile",
      "amx_bf16", "amx_int8", "asimd",       "sve",         "sve2",        "bf16",     "i8mm"};
  std::istringstream words(cpuinfo({"flags", "Features"}));
  std::set<std::string> found;
  for (std::string word; words >> word;)
    if (wanted.count(word) != 0) found.insert(word);
  std::string list = "[";
  for (const std::string& flag : found) list += (list.size() > 1 ? "," : "") + quoted(flag);
  return list + "]";
}

inline std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text) c = c == '\0' ? ' ' : c;
  return text;
}

/// `config`: JSON text of the model's configuration.
inline std::string provenance(const std::string& config) {
  utsname system{};
  uname(&system);
  char time[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  if (gmtime_r(&now, &utc) != nullptr) std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
  return "{\"time\":" + quoted(time) +
         ",\"platform\":" + quoted(std::string(system.sysname) + "-" + system.release + "-" + system.machine) +
         ",\"cpu\":" + quoted(cpuinfo({"model name"})) + ",\"cpu_flags\":" + cpu_flags() +
         ",\"command\":" + quoted(command_line()) + ",\"config\":" + (config.empty() ? "null" : config) + "}";
}

}  // namespace parity::probe
