// What a report holds besides ops: the clips of the same run, and what changed since a baseline. In every report file,
// and the clips in verdict and exit status.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "command.hpp"
#include "gate/sinks.hpp"
#include "published_schema.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"
#include "report/video.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"
#include "video_clips.hpp"

using namespace parity;
using nlohmann::json;

namespace {

bool in_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

ClipResult small_clip(CheckVerdict gate) {
  ClipResult clip;
  clip.reference.path = "r<b>.mp4", clip.candidate.path = "c.mp4";
  clip.reference_frames = clip.candidate_frames = clip.summary.frames = 2;
  for (int i = 0; i < 2; ++i) {
    FrameMetrics m;
    m.index = i, m.mse = .01, m.psnr = 20 + i, m.ssim = .9;
    clip.frames.push_back(m);
  }
  clip.summary.psnr_mean = 20.5, clip.summary.psnr_min = 20, clip.summary.psnr_min_frame = 0;
  clip.summary.rating = "poor";
  clip.checks = {{"frame_count", CheckVerdict::pass, "2 frames each"}, {"min_psnr", gate, "20.00 dB at frame 0"}};
  return clip;
}

Report all_pass() {
  Report r = test::sample_report();
  r.ops.resize(2);
  r.dtype_paths.clear();
  return r;
}

Report with_clips(Report report, CheckVerdict gate) {
  VideoReport video;
  video.clips = {small_clip(gate)};
  attach_video(report, std::make_shared<const VideoReport>(std::move(video)));
  return report;
}

json page_data(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("report: a pass says when most of the port's tensors are not among what was compared") {
  Report ops = all_pass();
  ops.coverage.clear();
  Coverage& coverage = ops.coverage["ref.h5"];
  coverage.paired = 2;
  coverage.unmatched_candidates = {"t3", "t4"};
  CHECK(headline(ops) == "PASS: all 2 comparisons pass.");
  coverage.unmatched_candidates.push_back("t5");
  CHECK(headline(ops) ==
        "PASS: all 2 comparisons pass. 3 tensors of the candidate, most that it has, are not among them.");
}

TEST_CASE("report: clips count in verdict, counts and exit status, and the headline says which of the two fails") {
  const Report ops = all_pass();
  REQUIRE(exit_status(ops) == 0);
  const Report good = with_clips(ops, CheckVerdict::pass), bad = with_clips(ops, CheckVerdict::fail);
  CHECK(exit_status(good) == 0);
  CHECK(headline(good) == "PASS: all 2 comparisons pass. Video: PASS: 2 frames compared, rated poor.");
  CHECK(count_verdicts(good).at("pass") == 4);
  CHECK(exit_status(bad) == 1);
  CHECK(headline(bad) == "FAIL: video, min_psnr: 20.00 dB at frame 0. Ops: PASS: all 2 comparisons pass.");
  CHECK(count_verdicts(bad).at("fail") == 1);
  CHECK(exit_status(with_clips(ops, CheckVerdict::inconclusive)) == 3);
  // A failing op is not made good by clips.
  const Report both = with_clips(test::sample_report(), CheckVerdict::pass);
  CHECK(exit_status(both) == 1);
  CHECK(headline(both).starts_with("FAIL: 3 of 8 comparisons fail"));
}

TEST_CASE("report: frames, ratings and worst frames stand in every report file") {
  const Report r = with_clips(all_pass(), CheckVerdict::fail);
  const json document = to_json(r);
  CHECK(test::schema_complaint("parity-report-1", document) == "");
  CHECK(document["video"]["frames"].size() == 2);
  CHECK(document["verdict"] == "fail");
  const auto folder = test::scratch_folder("clips");
  write_markdown(r, folder);
  const std::string text = test::read(folder / "report.md");
  CHECK(in_text(text, "## Video\n\n❌ **FAIL: min_psnr: 20.00 dB at frame 0**"));
  CHECK(in_text(text, "| rating | **poor** |"));
  CHECK(in_text(text, "| 1 | 0.01 | 21.00 | 0.90000 |"));
  CHECK(text.find("## Error along the model") < text.find("## Video"));
  CHECK(text.find("## Video") < text.find("## Method"));
  CHECK(in_text(console_summary(r, false), "Video\nFAIL: min_psnr: 20.00 dB at frame 0\n"));
  write_html(r, folder / "report.html");
  const std::string page = test::read(folder / "report.html");
  CHECK(!in_text(page, "r<b>.mp4"));
  const json clip = page_data(page)["video"][0];
  CHECK(clip["frames"]["psnr"] == json{20, 21});
  CHECK(clip["frames"]["rows"][0][2] == "20.00");
  CHECK(clip["sides"][0].get<std::string>().starts_with("r<b>.mp4"));
  CHECK(to_json(all_pass())["video"].is_null());
}

TEST_CASE("report: pictures of the worst frames go in as far as the page has room") {
  const auto folder = test::scratch_folder("pictures");
  VideoReport video;
  video.folder = folder;
  video.clips = {small_clip(CheckVerdict::pass)};
  video.pictures.resize(1);
  for (int i = 0; i < 4; ++i) {
    FramePictures& f = video.pictures[0].frames.emplace_back();
    f.index = i, f.reference = f.candidate = f.difference = fmt::format("{}.png", i);
    std::ofstream(folder / f.reference, std::ios::binary) << std::string(i < 2 ? 9000 : 900'000, 'x');
  }
  Report r = all_pass();
  attach_video(r, std::make_shared<const VideoReport>(std::move(video)));
  write_html(r, folder / "report.html");
  const std::string page = test::read(folder / "report.html");
  CHECK(page.size() < 5'000'000);
  const json pictures = page_data(page)["video"][0]["pictures"];
  REQUIRE(pictures.size() == 3);  // the fourth would be too much
  CHECK(pictures[1]["index"] == 1);
  CHECK(pictures[1]["candidate"].get<std::string>().size() == 22 + 12000);  // base64
  CHECK(pictures[1]["candidate"].get<std::string>().starts_with("data:image/png;base64,eHh4"));
}

TEST_CASE("report: what changed since the baseline stands in every report file, and leaves the verdict alone") {
  const Report before = all_pass();
  Report r = before;
  r.ops[1].forced->bitwise_equal_share = .5;
  r.ops[1].candidate_path = "moved<b>";
  r.ops.push_back(r.ops[0]);
  r.ops[2].path = "added.op";
  r.since_baseline =
      since_baseline(compare_with(frozen(before, "as released", "2026-01-02"), r, "2026-02-01"), "b.json");
  const SinceBaseline& since = *r.since_baseline;
  REQUIRE(since.rows.size() == 2);
  CHECK(since.rows[0].change == "paired");
  CHECK(in_text(since.rows[0].note, "with moved<b>, before with " + before.ops[1].path));
  CHECK(since.rows[1].change == "added");
  CHECK(since.rows[1].was == "");
  CHECK(exit_status(r) == exit_status(before));
  const json document = to_json(r);
  CHECK(test::schema_complaint("parity-report-1", document) == "");
  CHECK(document["since_baseline"]["rows"][1]["was"].is_null());
  const auto folder = test::scratch_folder("since");
  write_markdown(r, folder), write_html(r, folder / "report.html");
  const std::string text = test::read(folder / "report.md"), screen = console_summary(r, false);
  CHECK(in_text(text, "## Since the baseline\n\n"));
  CHECK(in_text(text, "- baseline of 2026-01-02: as released\n"));
  CHECK(in_text(text, "| added | `added.op` |"));
  CHECK(in_text(text, "absent -&gt; pass"));
  CHECK(!in_text(text, "moved<b>"));
  CHECK(in_text(screen, "Since the baseline b.json: "));
  CHECK(in_text(screen, "\n  added      added.op ("));
  CHECK(page_data(test::read(folder / "report.html"))["since"] == document["since_baseline"]);
  CHECK(to_json(before)["since_baseline"].is_null());
  for (const char* key : {"headline", "rows", "verdict"}) {
    json bad = document;
    bad["since_baseline"].erase(key);
    CHECK(test::schema_complaint("parity-report-1", bad) != "");
  }
}

TEST_CASE("cli: run and compare take two clips and a baseline into one report") {
  const test::Scratch scratch;
  const auto late = [](int t, int y, int x, int k) { return test::scene(t - 1, y, x, k); };
  const std::string r = test::write_u8(scratch / "r.npy", test::scene), c = test::write_u8(scratch / "c.npy", late);
  const auto pairs = test::reference_dump("selftest");
  const auto out = scratch / "out";
  const std::string sides =
      fmt::format("compare {} {} --layer 'transformer.h.0.ln_1' ", (pairs / "gpt2.fp32.h5").string(),
                  (pairs / "gpt2.fp32.honest.products-in-three-parts.h5").string());
  REQUIRE(test::parity_check(sides + "-q --out " + out.string()).status == 0);
  const std::string baseline = (scratch / "baseline.json").string();
  REQUIRE(test::parity_check("gate " + (out / "report.json").string() + " --baseline " + baseline +
                             " --update --reason first -q")
              .status == 0);
  const test::Finished done = test::parity_check(sides + "--out " + out.string() + " --baseline " + baseline +
                                                 " --min-psnr 40 --video " + r + " " + c);
  CHECK(done.status == 1);  // every op passes, the clips do not
  CHECK(done.err == "");
  CHECK(in_text(done.out, "FAIL: video, min_psnr"));
  CHECK(in_text(done.out, "Since the baseline " + baseline));
  const json report = json::parse(test::read_text(out / "report.json"));
  CHECK(report["verdict"] == "fail");
  CHECK(report["video"]["frames"].size() == 12);
  CHECK(report["since_baseline"]["verdict"] == "pass");
  CHECK(report["since_baseline"]["rows"].empty());
  const std::string text = test::read_text(out / "report.md");
  for (const char* part : {"## Video", "one frame late", "![Worst frames](worst-frames.png)", "## Since the baseline"})
    CHECK_MESSAGE(in_text(text, part), part);
  const json clip = page_data(test::read_text(out / "report.html"))["video"][0];
  CHECK(clip["pictures"].size() == 4);
  CHECK(clip["pictures"][0]["difference"].get<std::string>().starts_with("data:image/png;base64,iVBORw0KGgo"));
}

TEST_CASE("cli: clips and baselines that are none are refused in one line, the main job takes them too") {
  const test::Scratch scratch;
  const std::string r = test::write_u8(scratch / "r.npy", test::scene);
  const auto pairs = test::reference_dump("selftest");
  const std::string sides =
      fmt::format("compare {0} {0} --layer 'transformer.h.0.ln_1' ", (pairs / "gpt2.fp32.h5").string());
  for (const std::string& bad : {" --video " + r, " --video " + r + " " + (scratch / "none.mp4").string(),
                                 " --baseline " + r, std::string(" --min-psnr 30")}) {
    CAPTURE(bad);
    const test::Finished refused = test::parity_check(sides + bad);
    CHECK(refused.status == 2);
    CHECK(test::lines(refused.err) == 1);
  }
  // The main job too.
  const auto own = scratch / "own";
  CHECK(test::parity_check("run --layer 'blocks.0.norm1' --dtype fp32 --reference " +
                           test::reference_dump("wan-t2v.fp32.h5").string() + " -q --out " + own.string() +
                           " --video " + r + " " + r)
            .status == 0);
  CHECK(in_text(test::read_text(own / "report.md"), "## Video"));
}
