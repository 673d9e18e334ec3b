#include "jobs/unit_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/named.hpp"
#include "dump/dump.hpp"

namespace parity {
namespace {

using std::chrono::steady_clock;

constexpr char kUnits[] = "parity-units/1 ";
constexpr std::chrono::seconds kToJoin(60);  // processes of one launch start together, on slow disks too
constexpr std::chrono::milliseconds kBetweenTries(50);

// "parity-units/1 {...}": what of two keys is not the same.
std::string difference(const std::string& there, const std::string& here) {
  using nlohmann::json;
  if (!there.starts_with(kUnits)) return "it is no file of finished work";
  const json a = json::parse(there.substr(sizeof kUnits - 1), nullptr, false),
             b = json::parse(here.substr(sizeof kUnits - 1), nullptr, false);
  if (a.is_object() && b.is_object())
    for (const auto& [name, value] : b.items())
      if (a.value(name, json()) != value)
        return fmt::format("{} differs ({} there, {} here)", name, a.value(name, json()).dump(), value.dump());
  return "it is of another version";
}

}  // namespace

UnitFile::UnitFile(UnitFileOptions options)
    : options_(std::move(options)), lines_(options_.file), head_(kUnits + options_.key.dump()) {
  if (options_.launch.rank == 0)
    begin();
  else
    join();
  resumed_ = units_.size();
  for (const auto& [index, text] : units_) arrived_.push_back(index);
  if (options_.launch.size > 1) watcher_ = std::thread([this] { watch(); });
}

UnitFile::~UnitFile() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  if (closed_) return;
  const bool first = options_.launch.rank == 0;
  try {
    if (!lost_) look_back();
    if (first && !units_.empty() && options_.inputs_known()) write_inputs();
    append(fmt::format("failed {}", options_.launch.rank));
  } catch (const Error&) {  // a full disk: what it holds is as good as it was
  }
  std::error_code ignored;
  if (first && units_.empty()) std::filesystem::remove(options_.file, ignored);
}

void UnitFile::begin() {
  lines_.open(true);
  lines_.alone([&] {
    if (!lines_.live_as(0))
      throw Error(fmt::format("{}: another comparison is at work on it; give this one another --json or --out",
                              options_.file.string()));
    if (options_.resume) go_on();
    if (!units_.empty()) return lines_.append("again");
    lines_.clear();
    lines_.append(head_);
  });
}

// What is there of an earlier run: nothing, or units of this very comparison.
void UnitFile::go_on() {
  const std::vector<std::string> lines = lines_.new_lines();
  const std::string file = options_.file.string();
  if (!lines.empty() && lines.front() != head_)
    throw Error(fmt::format("{}: is of another comparison: {}; go on without --resume to begin anew", file,
                            difference(lines.front(), head_)));
  for (const std::string& line : lines) parse(line);
  here_.clear(), left_.clear(), failed_.clear(), taken_.clear();
  if (inputs_.empty()) units_.clear();
  if (units_.empty())
    options_.tell(fmt::format("nothing to resume: {} holds no finished work; the comparison begins", file));
  else if (inputs_ != options_.inputs())
    throw Error(
        fmt::format("{}: is of other inputs: the SHA-256 of the reference or the candidate is another; go on "
                    "without --resume to begin anew",
                    file));
  inputs_written_ = !units_.empty();
}

void UnitFile::join() {
  const int rank = options_.launch.rank;
  for (bool joined = false; !joined;) {
    if (lines_.open(false))
      lines_.alone([&] {
        if (!lines_.alive(0)) return;
        const std::vector<std::string> lines = lines_.new_lines();
        if (lines.empty() || lines.front() != head_)
          throw Error(fmt::format("rank {} is not like rank 0: {}", rank,
                                  difference(lines.empty() ? "" : lines.front(), head_)));
        for (const std::string& line : lines) parse(line);
        if (!lines_.live_as(rank))
          throw Error(fmt::format("{}: there is a rank {} already", options_.file.string(), rank));
        lines_.append(fmt::format("here {}", rank));
        joined = true;
      });
    if (joined) return;
    lines_.close();
    if (steady_clock::now() - start_ > kToJoin)
      throw Error(
          fmt::format("rank {} of {} sees nothing of rank 0 in {}: all ranks need the same file system there "
                      "(to compare alone, unset OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID)",
                      rank, options_.launch.size, options_.file.string()));
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void UnitFile::read_new() {
  for (const std::string& line : lines_.new_lines()) parse(line);
}

// One line; a unit's index stands before it.
void UnitFile::parse(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  ++line_;
  int64_t number = 0;
  if (kind == "unit") {
    const std::string text = checked(line, kind);
    std::istringstream(text) >> number;
    if (units_.emplace(number, text.substr(std::min(text.size(), text.find(' ') + 1))).second)
      arrived_.push_back(number);
  } else if (kind == "inputs") {
    inputs_ = checked(line, kind);
  } else if (kind == "take") {
    words >> number;  // the rank
    while (words >> number) taken_.insert(number);
  } else if (kind == "again") {
    here_.clear(), left_.clear(), failed_.clear(), taken_.clear();
  } else if (std::set<int>* of = kind == "here"     ? &here_
                                 : kind == "left"   ? &left_
                                 : kind == "failed" ? &failed_
                                                    : nullptr) {
    words >> number;
    of->insert(static_cast<int>(number));
  } else if (line != head_) {
    throw Error(fmt::format("{}: line {} is not of this file's kind", options_.file.string(), line_));
  }
}

std::string UnitFile::signed_line(const std::string& kind, const std::string& text) const {
  return fmt::format("{} {} {}", kind, sha256_of_text(fmt::format("{}\n{} {}", head_, kind, text)), text);
}

std::string UnitFile::checked(const std::string& line, const std::string& kind) const {
  constexpr size_t kDigest = 64;
  const size_t begin = kind.size() + 1 + kDigest + 1;
  const std::string text = line.size() < begin ? "" : line.substr(begin);
  if (signed_line(kind, text) == line) return text;
  throw Error(
      fmt::format("{}: line {} is damaged or was changed: its SHA-256 does not fit; go on without --resume to "
                  "begin anew",
                  options_.file.string(), line_));
}

void UnitFile::append(const std::string& line) {
  lines_.alone([&] {
    read_new();
    lines_.append(line);
    ++line_;
  });
}

void UnitFile::write_inputs() {
  if (inputs_written_ || options_.launch.rank != 0) return;
  append(signed_line("inputs", options_.inputs()));
  inputs_written_ = true;
}

void UnitFile::expect(size_t units) {
  const std::lock_guard guard(mutex_);
  expected_ = units;
}

std::vector<int64_t> UnitFile::take(const std::vector<int64_t>& together) {
  const std::lock_guard guard(mutex_);
  rethrow();
  const Launch launch = options_.launch;
  std::vector<int64_t> own;
  const auto choose = [&] {
    for (size_t i = 0; i < together.size(); ++i) {
      if (units_.contains(together[i]) || taken_.contains(together[i])) continue;
      if (together.size() > 1 && static_cast<int>(i % static_cast<size_t>(launch.size)) != launch.rank) continue;
      own.push_back(together[i]);
    }
  };
  if (launch.size == 1) {
    choose();
    return own;
  }
  lines_.alone([&] {
    read_new();
    choose();
    if (own.empty()) return;
    std::string line = fmt::format("take {}", launch.rank);
    for (const int64_t index : own) line += fmt::format(" {}", index);
    lines_.append(line);
  });
  own_.insert(own.begin(), own.end());
  taken_.insert(own.begin(), own.end());
  return own;
}

void UnitFile::finished(const WorkUnit& unit) {
  const std::lock_guard guard(mutex_);
  rethrow();
  const std::string text = text_of(unit);
  append(signed_line("unit", fmt::format("{} {}", unit.row.index, text)));
  units_.emplace(unit.row.index, options_.launch.size > 1 ? text : "");
  own_.erase(unit.row.index);
  if (options_.inputs_known()) write_inputs();
}

std::optional<WorkUnit> UnitFile::find(int64_t index) {
  const std::lock_guard guard(mutex_);
  rethrow();
  if (!units_.contains(index) && options_.launch.size > 1) lines_.alone([&] { read_new(); });
  const auto found = units_.find(index);
  if (found == units_.end()) return std::nullopt;
  return named({options_.file.string()}, [&] { return read_unit(found->second); });
}

std::vector<int64_t> UnitFile::arrived() {
  const std::lock_guard guard(mutex_);
  return std::exchange(arrived_, {});
}

bool UnitFile::over() {
  const std::lock_guard guard(mutex_);
  if (options_.launch.rank == 0 || !own_.empty()) return false;
  size_t done = units_.size();
  for (const int64_t index : taken_) done += !units_.contains(index);
  return done >= expected_;
}

bool UnitFile::lost() {
  const std::lock_guard guard(mutex_);
  return lost_;
}

void UnitFile::rethrow() const {
  if (!broken_.empty()) throw Error(broken_);
}

bool UnitFile::close() {
  const Launch launch = options_.launch;
  std::unique_lock guard(mutex_);
  if (launch.rank > 0) {
    wake_.wait(guard, [&] { return lost_ || left_.contains(0); });
    if (!left_.contains(0)) return false;
  }
  const auto all_here = [&] { return lost_ || static_cast<int>(here_.size()) >= launch.size - 1; };
  if (launch.rank == 0 && launch.size > 1) wake_.wait(guard, all_here);
  append(fmt::format("left {}", launch.rank));
  closed_ = true;
  std::error_code ignored;
  if (launch.rank == 0) std::filesystem::remove(options_.file, ignored);
  return true;
}

}  // namespace parity
