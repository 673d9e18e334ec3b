// One pass over two clips: reading ahead, frames measured in parallel, results in order.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "core/error.hpp"
#include "video/clip.hpp"
#include "video/diagnose.hpp"
#include "video/reader.hpp"

namespace parity {
namespace {

using FramePtr = std::shared_ptr<const Frame>;

struct Measured {
  FrameMeasured frame;
  Thumbnail reference, candidate;
  std::vector<PlacedFrame> placed;
};

struct Pending {
  FramePtr reference, candidate;
  std::future<Measured> result;
};

/// Frames of this many bytes together are measured at a time: memory does not grow with the machine.
constexpr size_t kInFlight = size_t{128} << 20;

/// Means, extremes and their places, a frame at a time.
class Summing {
 public:
  void add(const FrameMetrics& m) {
    ++s_.frames;
    s_.identical_frames += m.identical;
    add_mean(mse_, m.mse), add_mean(absolute_, m.mean_abs), add_mean(equal_, m.equal_share);
    add_mean(psnr_, m.psnr), add_mean(ssim_, m.ssim), add_mean(ms_ssim_, m.ms_ssim), add_mean(relative_, m.mean_rel);
    if (m.rel_l2)
      add_mean(reference_square_, *m.rel_l2 > 0 ? std::optional(m.mse / (*m.rel_l2 * *m.rel_l2)) : std::nullopt);
    s_.mse_max = std::max(s_.mse_max.value_or(0), m.mse);
    s_.max_abs_diff = std::max(s_.max_abs_diff.value_or(0), m.max_abs);
    least(m.psnr, s_.psnr_min, s_.psnr_min_frame, m.index);
    least(m.ssim, s_.ssim_min, s_.ssim_min_frame, m.index);
    if (m.ms_ssim) s_.ms_ssim_min = std::min(s_.ms_ssim_min.value_or(2), *m.ms_ssim);
    bias_.resize(m.bias.size());
    for (size_t k = 0; k < m.bias.size(); ++k) bias_[k] += m.bias[k];
    if (m.flicker) add_mean(flicker_, *m.flicker * *m.flicker);
    if (m.motion_reference) add_mean(motion_r_, *m.motion_reference * *m.motion_reference);
    if (m.motion_candidate) add_mean(motion_c_, *m.motion_candidate * *m.motion_candidate);
  }

  ClipSummary summary(const DifferencePool& pool) const {
    ClipSummary s = s_;
    s.mse_mean = mse_.value(), s.mean_abs_diff = absolute_.value(), s.equal_share = equal_.value();
    s.psnr_mean = psnr_.value(), s.ssim_mean = ssim_.value(), s.ms_ssim_mean = ms_ssim_.value();
    s.mean_rel_diff = relative_.value();
    if (s.psnr_mean && s.mse_mean && *s.mse_mean > 0) s.psnr_pooled = -10 * std::log10(*s.mse_mean);
    if (reference_square_.value() && s.mse_mean) s.rel_l2 = std::sqrt(*s.mse_mean / *reference_square_.value());
    s.p95_abs_diff = pool.percentile(.95);
    s.p99_abs_diff = pool.percentile(.99);
    for (const double b : bias_) s.bias.push_back(b / static_cast<double>(std::max<int64_t>(s.frames, 1)));
    if (flicker_.value()) s.flicker = std::sqrt(*flicker_.value());
    if (motion_r_.value() && *motion_r_.value() > 0)
      s.motion_ratio = std::sqrt(*motion_c_.value() / *motion_r_.value());
    return s;
  }

 private:
  struct Mean {
    double sum = 0;
    int64_t count = 0;
    std::optional<double> value() const {
      return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
    }
  };
  static void add_mean(Mean& mean, std::optional<double> value) {
    if (value) mean.sum += *value, ++mean.count;
  }
  static void least(std::optional<double> value, std::optional<double>& least, int64_t& frame, int64_t index) {
    if (value && (!least || *value < *least)) least = value, frame = index;
  }

  ClipSummary s_;
  Mean mse_, absolute_, equal_, psnr_, ssim_, ms_ssim_, relative_, reference_square_, flicker_, motion_r_, motion_c_;
  std::vector<double> bias_;
};

class Comparison {
 public:
  Comparison(const std::string& reference, const std::string& candidate, const ClipOptions& options)
      : reference_path_(reference), candidate_path_(candidate), options_(options) {}

  ClipResult run() {
    const auto start = std::chrono::steady_clock::now();
    open();
    result_.reference = reference_->facts();
    result_.candidate = candidate_->facts();
    describe();
    if (options_.begin) options_.begin(result_);
    pass();
    if (result_.reference_frames == 0 || result_.candidate_frames == 0)
      throw Error(
          fmt::format("{}: holds no frames", result_.reference_frames == 0 ? reference_path_ : candidate_path_));
    for (const FrameSource* source : {reference_.get(), candidate_.get()})  // what only reading showed
      for (const std::string& warning : source->facts().warnings)
        if (std::find(result_.warnings.begin(), result_.warnings.end(), warning) == result_.warnings.end())
          result_.warnings.push_back(warning);
    summarise();
    judge(result_, options_.thresholds, times_apart_);
    if (options_.diagnose) explain();
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  void open() {
    reference_ = open_frames(reference_path_, options_.reference);
    candidate_ = open_frames(candidate_path_, options_.candidate);
    if (!options_.reference.luma || reference_->facts().luma_plane == candidate_->facts().luma_plane) return;
    // One has a coded Y plane, the other has not: both go through RGB, so that Y means the same.
    reference_ = luma_through_rgb(reference_path_, options_.reference);
    candidate_ = luma_through_rgb(candidate_path_, options_.candidate);
  }

  static std::unique_ptr<FrameSource> luma_through_rgb(const std::string& path, SourceOptions options) {
    options.luma = false;
    return luma_of(open_frames(path, options));
  }

  void describe() {
    const ClipFacts &r = result_.reference, &c = result_.candidate;
    VideoDefinition& d = result_.definition;
    d.luma = options_.reference.luma;
    d.ssim = options_.measure.ssim;
    d.ranged = options_.measure.ranged;
    d.range = options_.reference.range;
    d.conversion = r.conversion == c.conversion
                       ? r.conversion
                       : fmt::format("reference: {}; candidate: {}", r.conversion, c.conversion);
    for (const ClipFacts* facts : {&r, &c})
      result_.warnings.insert(result_.warnings.end(), facts->warnings.begin(), facts->warnings.end());
    if (r.kind == "video" && c.kind == "video" && r.conversion != c.conversion)
      result_.warnings.emplace_back(
          "the two videos become RGB in different ways (see definition): part of the difference is the conversion");
  }

  bool comparable() const {
    const ClipFacts &r = result_.reference, &c = result_.candidate;
    return r.width == c.width && r.height == c.height && r.channels == c.channels;
  }

  void pass() {
    ReadAhead references(*reference_), candidates(*candidate_);
    FramePtr r1, c1;
    while (true) {
      FramePtr r = references.next(), c = candidates.next();
      result_.reference_frames += r != nullptr;
      result_.candidate_frames += c != nullptr;
      if (!r || !c) {
        count_rest(r ? references : candidates, r ? result_.reference_frames : result_.candidate_frames, r || c);
        break;
      }
      if (!comparable()) continue;
      note_times(*r, *c);
      if (scratch_.empty()) scratch_.resize(workers(*r));
      start(r, c, r1, c1);
      r1 = r, c1 = c;
      if (pending_.size() >= scratch_.size()) finish_one();
    }
    while (!pending_.empty()) finish_one();
  }

  size_t workers(const Frame& frame) const {
    if (options_.threads > 0) return static_cast<size_t>(options_.threads);
    return std::clamp<size_t>(kInFlight / (4 * frame.bytes.size() + 1), 2,
                              std::max(2U, std::thread::hardware_concurrency()));
  }

  static void count_rest(ReadAhead& reader, int64_t& count, bool any) {
    while (any && reader.next()) ++count;
  }

  void note_times(const Frame& r, const Frame& c) {
    if (r.time && c.time) times_apart_ = std::max(times_apart_.value_or(0), std::abs(*r.time - *c.time));
  }

  void start(const FramePtr& r, const FramePtr& c, const FramePtr& r1, const FramePtr& c1) {
    const MeasureOptions measure = options_.measure;
    const bool diagnose = options_.diagnose;
    const bool first = static_cast<int64_t>(started_) < Diagnosis::kPlaced;
    SsimScratch* const scratch = &scratch_[started_++ % scratch_.size()];  // its last user has finished
    const auto work = [=] {
      Measured out;
      out.frame = measure_frame(*r, *c, r1.get(), c1.get(), measure, scratch);
      if (diagnose) out.reference = thumbnail(*r), out.candidate = thumbnail(*c);
      if (diagnose && first) out.placed = placed(*r);
      return out;
    };
    pending_.push_back({r, c, std::async(std::launch::async, work)});
  }

  void finish_one() {
    Pending oldest = std::move(pending_.front());
    pending_.pop_front();
    Measured measured = oldest.result.get();
    FrameMetrics& m = measured.frame.metrics;
    m.index = static_cast<int64_t>(result_.frames.size());
    pool_.add(measured.frame.differences);
    summing_.add(m);
    if (options_.diagnose) diagnosis_.add(measured.reference, measured.candidate, measured.placed);
    if (options_.pair) options_.pair({*oldest.reference, *oldest.candidate, m});
    result_.frames.push_back(std::move(m));
    if (options_.progress) options_.progress(static_cast<int64_t>(result_.frames.size()));
  }

  void summarise() {
    result_.summary = summing_.summary(pool_);
    result_.definition.exact_percentiles = pool_.exact();
    result_.histogram = pool_.histogram(64, result_.summary.max_abs_diff.value_or(0));
  }

  void explain() {
    if (auto odd = odd_frames(result_.frames)) result_.findings.push_back(*odd);
    const double before = result_.summary.mse_mean.value_or(0);
    const auto hypothesis = before > 3e-5 ? diagnosis_.best() : std::nullopt;  // above 45 dB nothing is to be explained
    if (!hypothesis || !options_.measure.ranged) return;
    open();
    if (auto found = confirmed(*hypothesis, before, error_under(*reference_, *candidate_, *hypothesis)))
      result_.findings.insert(result_.findings.begin(), *found);
  }

  std::string reference_path_, candidate_path_;
  const ClipOptions& options_;
  std::unique_ptr<FrameSource> reference_, candidate_;
  ClipResult result_;
  std::vector<SsimScratch> scratch_;  // one a worker
  size_t started_ = 0;
  std::deque<Pending> pending_;  // after scratch_: its futures wait for the work that uses it
  DifferencePool pool_;
  Summing summing_;
  Diagnosis diagnosis_;
  std::optional<double> times_apart_;
};

}  // namespace

ClipResult compare_clips(const std::string& reference, const std::string& candidate, const ClipOptions& options) {
  return Comparison(reference, candidate, options).run();
}

}  // namespace parity
