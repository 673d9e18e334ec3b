// Every common fault of frames is red against a gate, and named.
#include <doctest/doctest.h>

#include "command.hpp"
#include "video/clip.hpp"
#include "video_clips.hpp"

using namespace parity;
using namespace parity::test;
using doctest::Approx;

namespace {

ClipResult compared(const std::string& reference, const std::string& candidate) {
  ClipOptions options;
  options.threads = 2;
  options.thresholds.min_psnr = 40;
  return compare_clips(reference, candidate, options);
}

const Check* check(const ClipResult& r, const std::string& name) {
  for (const Check& c : r.checks)
    if (c.name == name) return &c;
  return nullptr;
}

const ClipFinding* finding(const ClipResult& r, const std::string& kind) {
  for (const ClipFinding& f : r.findings)
    if (f.kind == kind) return &f;
  return nullptr;
}

/// Rounding of another kind everywhere: what a correct port looks like.
double port(int t, int y, int x, int k) { return scene(t, y, x, k) + ((x * 7 + y * 3 + t) % 3 - 1) / 600.0; }

struct FrameFault {
  const char *name, *kind, *says;
  Picture picture;
};
double quantised(double v) { return std::lround(std::min(1.0, std::max(0.0, v)) * 255) / 255.0; }

const std::vector<FrameFault> kFrameFaults{
    {"late", "offset", "one frame late", [](int t, int y, int x, int k) { return scene(t - 1, y, x, k); }},
    {"early", "offset", "2 frames early", [](int t, int y, int x, int k) { return scene(t + 2, y, x, k); }},
    {"repeated", "jump", "one frame late from frame 6 on",
     [](int t, int y, int x, int k) { return scene(t < 6 ? t : t - 1, y, x, k); }},
    {"dropped", "jump", "one frame early from frame 5 on",
     [](int t, int y, int x, int k) { return scene(t < 5 ? t : t + 1, y, x, k); }},
    {"bgr", "channels", "BGR", [](int t, int y, int x, int k) { return scene(t, y, x, 2 - k); }},
    {"half", "range", "(x + 1) / 2", [](int t, int y, int x, int k) { return (scene(t, y, x, k) + 1) / 2; }},
    {"clipped", "range", "(x + 1) / 2 is missing",
     [](int t, int y, int x, int k) { return 2 * scene(t, y, x, k) - 1; }},
    {"limited", "range", "limited-range",
     [](int t, int y, int x, int k) { return (16 + 219 * scene(t, y, x, k)) / 255; }},
    {"expanded", "range", "expanded", [](int t, int y, int x, int k) { return (255 * scene(t, y, x, k) - 16) / 219; }},
    {"inverted", "range", "inverted", [](int t, int y, int x, int k) { return 1 - scene(t, y, x, k); }},
    {"mirrored", "flip", "mirrored", [](int t, int y, int x, int k) { return scene(t, y, 63 - x, k); }},
    {"upside", "flip", "upside down", [](int t, int y, int x, int k) { return scene(t, 47 - y, x, k); }},
    {"moved", "shift", "moved by 2 pixels to the right and 1 pixel up:",
     [](int t, int y, int x, int k) { return scene(t, std::min(y + 1, 47), std::max(x - 2, 0), k); }},
    {"backwards", "order", "backwards", [](int t, int y, int x, int k) { return scene(11 - t, y, x, k); }},
    {"gamma", "gamma", "gamma 2.2",
     [](int t, int y, int x, int k) { return std::pow(quantised(scene(t, y, x, k)), 2.2); }},
    {"encoded", "gamma", "gamma-encoded",
     [](int t, int y, int x, int k) { return std::pow(quantised(scene(t, y, x, k)), 1 / 2.2); }},
    {"brighter", "brightness", "R = 1.000 x +0.0", [](int t, int y, int x, int k) { return scene(t, y, x, k) + .08; }},
    {"one bad frame", "frames", "frame 7 is far worse",
     [](int t, int y, int x, int k) { return t == 7 ? scene(t, y, x, k) * .5 : port(t, y, x, k); }},
};

}  // namespace

TEST_CASE("video: a clip against itself is identical, a rounded one passes and nothing is diagnosed") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene), p = write_u8(scratch / "p.npy", port);
  const ClipResult same = compared(r, r);
  CHECK(overall(same) == CheckVerdict::pass);
  CHECK(same.summary.rating == "identical");
  CHECK(same.summary.identical_frames == 12);
  CHECK_FALSE(same.summary.psnr_mean);
  const ClipResult rounded = compared(r, p);
  CHECK(overall(rounded) == CheckVerdict::pass);
  CHECK(rounded.findings.empty());
  CHECK(rounded.summary.rating == "excellent");
  CHECK(rounded.frames.size() == 12);
}

TEST_CASE("video: every seeded frame fault is red and named") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene);
  for (const FrameFault& fault : kFrameFaults) {
    CAPTURE(fault.name);
    const ClipResult result = compared(r, write_u8(scratch / "c.npy", fault.picture));
    CHECK(overall(result) == CheckVerdict::fail);
    REQUIRE(check(result, "min_psnr"));
    CHECK(check(result, "min_psnr")->verdict == CheckVerdict::fail);
    const ClipFinding* found = finding(result, fault.kind);
    REQUIRE(found);
    CAPTURE(found->text);
    CHECK(found->text.find(fault.says) != std::string::npos);
    if (std::string_view(fault.kind) != "frames") CHECK(found->psnr_after.value_or(99) > *found->psnr_before + 3);
  }
}

TEST_CASE("video: rows and columns exchanged in square frames") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene, {5, 48, 48, 3});
  const ClipResult result = compared(
      r, write_u8(scratch / "c.npy", [](int t, int y, int x, int k) { return scene(t, x, y, k); }, {5, 48, 48, 3}));
  REQUIRE(finding(result, "flip"));
  CHECK(finding(result, "flip")->text.find("rows and columns are exchanged") != std::string::npos);
  CHECK_FALSE(finding(result, "flip")->psnr_after);  // undone they are identical
}

TEST_CASE("video: an offset's second figure is the PSNR of the aligned clips") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene);
  const ClipResult late =
      compared(r, write_u8(scratch / "c.npy", [](int t, int y, int x, int k) { return port(t - 1, y, x, k); }));
  const ClipResult aligned = compared(
      write_u8(scratch / "r1.npy", [](int t, int y, int x, int k) { return scene(t, y, x, k); }, {11, 48, 64, 3}),
      write_u8(scratch / "c1.npy", [](int t, int y, int x, int k) { return port(t, y, x, k); }, {11, 48, 64, 3}));
  REQUIRE(finding(late, "offset"));
  CHECK(*finding(late, "offset")->psnr_after == Approx(*aligned.summary.psnr_pooled).epsilon(1e-6));
  CHECK(*finding(late, "offset")->psnr_before == Approx(*late.summary.psnr_pooled).epsilon(1e-6));
}

TEST_CASE("video: unequal count, size, channels or rate fail without any gate") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene);
  const auto only = [&](const std::string& candidate) { return compare_clips(r, candidate, {}); };
  const ClipResult shorter = only(write_u8(scratch / "a.npy", scene, {11, 48, 64, 3}));
  CHECK(check(shorter, "frame_count")->verdict == CheckVerdict::fail);
  CHECK(shorter.reference_frames == 12);
  CHECK(shorter.candidate_frames == 11);
  CHECK(shorter.frames.size() == 11);  // what both have is measured
  const ClipResult smaller = only(write_u8(scratch / "b.npy", scene, {12, 48, 62, 3}));
  CHECK(check(smaller, "frame_size")->verdict == CheckVerdict::fail);
  CHECK(smaller.frames.empty());
  const ClipResult turned = only(write_u8(scratch / "t.npy", scene, {12, 64, 48, 3}));
  CHECK(check(turned, "frame_size")->text == "reference 64x48, candidate 48x64: width and height are exchanged");
  CHECK_FALSE(smaller.summary.mse_mean);
  const ClipResult grey = only(write_u8(scratch / "c.npy", scene, {12, 48, 64, 1}));
  CHECK(check(grey, "channels")->verdict == CheckVerdict::fail);
  const auto luma = [](int t, int y, int x) { return (t * 9 + x + 2 * y) & 255; };
  const std::string at25 = write_y4m(scratch / "a.y4m", {5, 16, 32, 1}, luma),
                    at24 = write_y4m(scratch / "b.y4m", {5, 16, 32, 1}, luma, "24:1");
  CHECK(overall(compare_clips(at25, at25, {})) == CheckVerdict::pass);
  const ClipResult slower = compare_clips(at25, at24, {});
  CHECK(check(slower, "frame_rate")->verdict == CheckVerdict::fail);
}

TEST_CASE("video: a gate that cannot be measured is inconclusive, not green") {
  const Scratch scratch;
  const std::string r = write_u8(scratch / "r.npy", scene, {3, 8, 8, 3});
  ClipOptions options;
  options.thresholds.min_ssim = .9;
  CHECK(overall(compare_clips(r, r, options)) == CheckVerdict::inconclusive);
}
