// parity-check video: its files, exit statuses and refusals.
#include <doctest/doctest.h>

#include "command.hpp"
#include "video/clip.hpp"
#include "video_clips.hpp"

using namespace parity;
using namespace parity::test;
namespace fs = std::filesystem;

namespace {

double one_late(int t, int y, int x, int k) { return scene(t - 1, y, x, k); }

// One page that needs nothing else, runs nothing, and fits a phone.
void check_page(const std::string& page) {
  for (const char* part :
       {"width=device-width", "prefers-color-scheme:dark", "one frame late", "data:image/svg+xml;base64,PD94",
        "data:image/png;base64,iVBORw0KGgo", "data:video/mp4;base64,AAAA", "</html>"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  for (const char* part : {"<script", "http://", "https://", "<link", "javascript:"})
    CHECK_MESSAGE(page.find(part) == std::string::npos, part);
}

}  // namespace

TEST_CASE("cli: video writes its report and exits as promised") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene), c = write_u8(scratch / "c.npy", one_late);
  const std::string out = (scratch / "out").string(), json = (scratch / "v.json").string();
  const Finished f = parity_check("video " + r + " " + c + " --out " + out + " --json " + json);
  CHECK(f.status == 0);  // measured, no gate
  CHECK(f.err == "");
  CHECK(f.out.find("one frame late") != std::string::npos);
  for (const char* file : {"video.md", "video.html", "video.json", "over-time.svg", "histogram.svg", "worst-frames.png",
                           "heat-map.png", "side-by-side.mp4"})
    CHECK_MESSAGE(fs::exists(fs::path(out) / file), file);
  const auto beside = open_frames(out + "/side-by-side.mp4", {});
  int frames = 0;
  for (Frame frame; beside->read(frame);) ++frames;
  CHECK(frames == 12);
  check_page(read_text(out + "/video.html"));
  const auto report = nlohmann::json::parse(read_text(json));
  CHECK(report["schema"] == "parity-report/1");
  CHECK(report["video"]["definition"]["ssim"]["window"] == "gaussian");
  CHECK(report["video"]["frames"].size() == 12);
  CHECK(report["video"]["summary"]["rating"].is_string());
  CHECK(report["video"]["frames"][0]["psnr"].is_number());
  CHECK(parity_check("video " + r + " " + c + " --metrics-only --min-psnr 40 -q").status == 1);
  CHECK(parity_check("video " + r + " " + r + " --metrics-only --min-psnr 40 --min-ssim 0.99 -q").status == 0);
  // Into a run's report: its section, and the verdict no better than before.
  CHECK(parity_check("video " + r + " " + c + " --metrics-only -q --min-psnr 40 --into " + json).status == 1);
  const auto merged = nlohmann::json::parse(read_text(json));
  CHECK(merged["verdict"] == "fail");
  CHECK(merged["counts"]["fail"] == 1);
  CHECK(merged["counts"]["pass"] == 2 * report["counts"]["pass"].get<int>());
  CHECK(merged["video"]["checks"].size() == report["video"]["checks"].size() + 1);
  CHECK(parity_check("video " + r + " " + c + " --metrics-only -q --into " + (scratch / "out" / "video.md").string())
            .status == 2);
}

TEST_CASE("cli: video of latents, which have no range, writes its whole report") {
  const Scratch scratch;
  const auto latents = [](double off) {
    return [off](int t, int y, int x, int k) { return 3 * std::sin(t + .3 * y + .1 * x + k) + off; };
  };
  const std::string r = write_f32(scratch / "r.npy", latents(0)), c = write_f32(scratch / "c.npy", latents(.01));
  const Finished f = parity_check("video " + r + " " + c + " --range none --out " + (scratch / "out").string());
  CHECK(f.status == 0);
  CHECK(f.err == "");
  CHECK(fs::exists(scratch / "out" / "worst-frames.png"));
}

TEST_CASE("cli: video refuses in one line, and takes thresholds from a file") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene), c = write_u8(scratch / "c.npy", one_late);
  const Finished f = parity_check("video " + r + " " + (scratch / "absent.mp4").string());
  CHECK(f.status == 2);
  CHECK(lines(f.err) == 1);
  CHECK(parity_check("video " + r + " " + c + " --range 1,0 --metrics-only").status == 2);
  std::ofstream(scratch / "t.json") << R"({"video": {"min_psnr": 60}})";
  CHECK(parity_check("video " + r + " " + c + " --metrics-only -q --thresholds " + (scratch / "t.json").string())
            .status == 1);
  std::ofstream(scratch / "t.json") << R"({"video": {"min_pnsr": 60}})";
  CHECK(parity_check("video " + r + " " + c + " --metrics-only -q --thresholds " + (scratch / "t.json").string())
            .status == 2);
}

TEST_CASE("cli: video compares folders of pairs by name") {
  const Scratch scratch;
  for (const char* folder : {"r", "c"}) fs::create_directory(scratch / folder);
  for (const char* name : {"clip2.npy", "clip10.npy"}) {
    write_u8(scratch / "r" / name, scene);
    write_u8(scratch / "c" / name,
             [&](int t, int y, int x, int k) { return scene(t, y, x, k) * (name[4] == '2' ? 1 : .9); });
  }
  const std::string folders = (scratch / "r").string() + " " + (scratch / "c").string();
  const Finished f = parity_check("video " + folders + " --metrics-only --json " + (scratch / "v.json").string());
  CHECK(f.status == 0);
  CHECK(f.out.find("clip2") < f.out.find("clip10"));
  const auto video = nlohmann::json::parse(read_text(scratch / "v.json"))["video"];
  CHECK(video["pairs"].size() == 2);
  CHECK(video["frames"].size() == 24);
  CHECK(video["pairs"][0]["summary"]["identical"] == true);
  fs::remove(scratch / "c" / "clip2.npy");
  CHECK(parity_check("video " + folders + " --metrics-only").status == 2);
}
