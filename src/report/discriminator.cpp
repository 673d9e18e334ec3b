#include "report/discriminator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <map>
#include <tuple>

#include "report/row_attributes.hpp"

namespace parity {
namespace {

constexpr double kBetterContrast = .1;  // a pair must split better than the best single attribute by this much
constexpr size_t kLargestSet = 400;  // attributes of which pairs are formed: 80 000 of them take 0.1 s at 15 000 rows

/// A set of rows, and how many it holds.
struct RowSet {
  std::vector<uint64_t> bits;
  int64_t count = 0;

  explicit RowSet(size_t rows) : bits((rows + 63) / 64) {}
  void insert(size_t row) { bits[row / 64] |= uint64_t{1} << row % 64; }
  void recount() {
    count = 0;
    for (const uint64_t word : bits) count += std::popcount(word);
  }
  int64_t common(const RowSet& other) const {
    int64_t n = 0;
    for (size_t i = 0; i < bits.size(); ++i) n += std::popcount(bits[i] & other.bits[i]);
    return n;
  }
};

struct Marked {
  std::string name;
  std::vector<std::string> the_same;
  RowSet rows;
};

bool fails_itself(const OpResult& op) {
  return (op.verdict == Verdict::fail || op.verdict == Verdict::shape) && op.gate != Gate::propagation;
}

std::vector<const OpResult*> decided(const Report& report) {
  std::vector<const OpResult*> out;
  for (const OpResult& op : report.ops)
    if (fails_itself(op) || op.verdict == Verdict::pass) out.push_back(&op);
  return out;
}

/// Attributes that some rows have and some have not, each set of rows once, in the order of attributes_of.
std::vector<Marked> marked_sets(const std::vector<const OpResult*>& rows) {
  int first = INT_MAX, last = -1;
  for (const OpResult* op : rows)
    if (const int layer = layer_of(*op); layer >= 0) first = std::min(first, layer), last = std::max(last, layer);
  std::vector<Marked> all;
  std::map<Attribute, size_t> places;
  for (size_t row = 0; row < rows.size(); ++row)
    for (const Attribute& attribute : attributes_of(*rows[row], first, last)) {
      const auto [place, fresh] = places.try_emplace(attribute, all.size());
      if (fresh) all.push_back({fmt::format("{} = {}", attribute.first, attribute.second), {}, RowSet(rows.size())});
      all[place->second].rows.insert(row);
    }
  std::vector<Marked> out;
  std::map<std::vector<uint64_t>, size_t> seen;
  for (Marked& m : all) {
    m.rows.recount();
    if (m.rows.count == static_cast<int64_t>(rows.size())) continue;
    const auto [place, fresh] = seen.try_emplace(m.rows.bits, out.size());
    if (fresh)
      out.push_back(std::move(m));
    else
      out[place->second].the_same.push_back(std::move(m.name));
  }
  return out;
}

/// One test: a set's size and how many failing rows it holds; its parts, second -1 for a single attribute.
struct Test {
  int first = 0, second = -1;
  int64_t with = 0, failing = 0;
};

class Search {
 public:
  Search(const std::vector<const OpResult*>& rows) : all_(static_cast<int64_t>(rows.size())), failing_(rows.size()) {
    for (size_t row = 0; row < rows.size(); ++row)
      if (fails_itself(*rows[row])) failing_.insert(row);
    failing_.recount();
    if (failing_.count >= 2 && failing_.count < all_) sets_ = marked_sets(rows);
  }

  std::optional<Discriminator> run() const {
    std::vector<Test> tests;
    for (size_t i = 0; i < sets_.size(); ++i)
      tests.push_back({static_cast<int>(i), -1, sets_[i].rows.count, sets_[i].rows.common(failing_)});
    const auto single = best(tests);
    if (sets_.size() > kLargestSet || (single && contrast(*single) > 1 - kBetterContrast)) return single;
    const auto pair = best(pairs());
    if (!pair || (single && contrast(*pair) < contrast(*single) + kBetterContrast)) return single;
    return pair;
  }

 private:
  std::vector<Test> pairs() const {
    std::vector<Test> out;
    RowSet both(static_cast<size_t>(all_));
    for (size_t i = 0; i < sets_.size(); ++i)
      for (size_t j = i + 1; j < sets_.size(); ++j) {
        for (size_t w = 0; w < both.bits.size(); ++w) both.bits[w] = sets_[i].rows.bits[w] & sets_[j].rows.bits[w];
        both.recount();
        if (both.count == 0 || both.count == sets_[i].rows.count || both.count == sets_[j].rows.count) continue;
        out.push_back({static_cast<int>(i), static_cast<int>(j), both.count, both.common(failing_)});
      }
    return out;
  }

  /// The smallest p that a set of this size can have, whichever rows fail.
  double least_p(int64_t with) const {
    return fisher_exact(std::min(with, failing_.count), with, failing_.count, all_);
  }

  /// Tarone's number of tests: the smallest k with at most k tests that can reach level / k.
  int64_t tarone(const std::vector<Test>& tests, double level) const {
    std::map<int64_t, double> by_size;
    std::vector<double> least;
    for (const Test& test : tests) {
      const auto [place, fresh] = by_size.try_emplace(test.with, 0);
      if (fresh) place->second = least_p(test.with);
      least.push_back(place->second);
    }
    std::sort(least.begin(), least.end());
    for (int64_t k = 1;; ++k) {
      const auto reach = std::upper_bound(least.begin(), least.end(), level / static_cast<double>(k));
      if (reach - least.begin() <= k) return k;
    }
  }

  double contrast(const Discriminator& d) const {
    return static_cast<double>(d.failing_with) / static_cast<double>(failing_.count) -
           static_cast<double>(d.with - d.failing_with) / static_cast<double>(all_ - failing_.count);
  }

  std::optional<Discriminator> best(const std::vector<Test>& tests) const {
    if (tests.empty()) return std::nullopt;
    const double level = kDiscriminatorAlarms / 2;
    const int64_t tried = tarone(tests, level);
    std::optional<Discriminator> out;
    for (const Test& test : tests) {
      Discriminator d;
      d.failing_with = test.failing;
      d.with = test.with;
      d.failing_without = failing_.count - test.failing;
      d.without = all_ - test.with;
      if (contrast(d) < kDiscriminatorContrast || (out && contrast(d) <= contrast(*out))) continue;
      d.p = fisher_exact(test.failing, test.with, failing_.count, all_);
      if (!(d.p <= level / static_cast<double>(tried))) continue;
      d.tried = tried;
      d.attribute = sets_[static_cast<size_t>(test.first)].name;
      if (test.second < 0)
        d.the_same = sets_[static_cast<size_t>(test.first)].the_same;
      else
        d.attribute += " and " + sets_[static_cast<size_t>(test.second)].name;
      out = std::move(d);
    }
    return out;
  }

  int64_t all_;
  RowSet failing_;
  std::vector<Marked> sets_;
};

double log_choose(int64_t n, int64_t k) {
  return std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
         std::lgamma(static_cast<double>(n - k) + 1);
}

}  // namespace

double fisher_exact(int64_t overlap, int64_t marked, int64_t chosen, int64_t all) {
  double p = 0;
  for (int64_t k = std::max(overlap, marked + chosen - all); k <= std::min(marked, chosen); ++k)
    p += std::exp(log_choose(marked, k) + log_choose(all - marked, chosen - k) - log_choose(all, chosen));
  return std::min(p, 1.0);
}

std::optional<Discriminator> discriminate(const Report& report) { return Search(decided(report)).run(); }

std::string Discriminator::sentence() const {
  std::string out = fmt::format("{} of {} rows with {} fail, {} of {} others", failing_with, with, attribute,
                                failing_without, without);
  if (!the_same.empty())
    out += fmt::format(
        "; the same rows have {}{}",
        fmt::join(std::vector(the_same.begin(), the_same.begin() + std::min<ptrdiff_t>(3, std::ssize(the_same))), ", "),
        the_same.size() > 3 ? ", …" : "");
  return out + fmt::format(" (Fisher's exact test, p {:.1g} after {} tries)",
                           std::min(1.0, p * static_cast<double>(tried)), tried);
}

}  // namespace parity
