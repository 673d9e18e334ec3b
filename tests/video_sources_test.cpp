// Reading clips, and refusing what is none: one clear line, exit status 2.
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/error.hpp"
#include "test_places.hpp"
#include "video/clip.hpp"
#include "video/codecs.hpp"
#include "video_clips.hpp"

using namespace parity;
using namespace parity::test;
namespace fs = std::filesystem;

namespace {

/// Every frame of a clip.
std::vector<Frame> frames_of(const std::string& path, const SourceOptions& options = {}) {
  const auto source = open_frames(path, options);
  std::vector<Frame> frames(1);
  while (source->read(frames.back())) frames.push_back(frames.back());
  frames.pop_back();
  return frames;
}

/// The message of the Error that reading the clip ends in; "" when it does not.
std::string refused(const std::string& path, const SourceOptions& options = {}) {
  try {
    frames_of(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& message, const std::string& part) {
  CAPTURE(message);
  const bool found = message.find(part) != std::string::npos && message.find('\n') == std::string::npos;
  CHECK(found);
  return found;
}

bool same(const Frame& a, const Frame& b) { return a.bytes == b.bytes; }

void cut(const fs::path& from, const fs::path& to, double share) {
  const std::string all = read_text(from);
  std::ofstream(to, std::ios::binary) << all.substr(0, static_cast<size_t>(static_cast<double>(all.size()) * share));
}

Frame picture(int width, int height, int t) {
  Frame frame;
  frame.shape(width, height, 3, Sample::u8);
  for (int i = 0; i < width * height * 3; ++i)
    frame.as<uint8_t>()[i] = static_cast<uint8_t>(scene(t, i / 3 / width, i / 3 % width, i % 3) * 255);
  return frame;
}

}  // namespace

TEST_CASE("video: pictures come in natural order") {
  CHECK(natural_less("frame9.png", "frame10.png"));
  CHECK(natural_less("a2b10", "a2b11"));
  CHECK_FALSE(natural_less("frame10.png", "frame9.png"));
  CHECK(natural_less("frame007.png", "frame10.png"));
  CHECK(natural_less("a", "b"));
  CHECK(natural_less("a", "a1"));
  const Scratch scratch;
  fs::create_directory(scratch / "frames");
  for (int t = 0; t < 12; ++t)
    picture_codecs().write_png(scratch / "frames" / ("f" + std::to_string(t) + ".png"), picture(20, 14, t));
  const auto frames = frames_of((scratch / "frames").string());
  REQUIRE(frames.size() == 12);
  for (int t = 0; t < 12; ++t) CHECK(same(frames[static_cast<size_t>(t)], picture(20, 14, t)));  // RGB order too
  picture_codecs().write_png(scratch / "frames" / "f3.png", picture(22, 14, 3));
  says(refused((scratch / "frames").string()), "a clip has one size");
}

TEST_CASE("video: truncated and foreign pictures are refused") {
  const Scratch scratch;
  picture_codecs().write_png(scratch / "a.png", picture(64, 48, 0));
  cut(scratch / "a.png", scratch / "b.png", .6);
  says(refused((scratch / "b.png").string()), "truncated");
  std::ofstream(scratch / "c.png") << "no picture";
  says(refused((scratch / "c.png").string()), "cannot be decoded");
  std::ofstream(scratch / "d.png") << "";
  says(refused((scratch / "d.png").string()), "empty");
  fs::create_directory(scratch / "none");
  says(refused((scratch / "none").string()), "no pictures");
  says(refused((scratch / "absent").string()), "no such file");
}

TEST_CASE("video: arrays in every layout") {
  const Scratch scratch;
  const Size size{3, 6, 5, 3};
  const auto value = [](int t, int y, int x, int k) { return (t * 90 + y * 15 + x * 3 + k) / 300.0; };
  const auto expected = frames_of(write_f32(scratch / "thwc.npy", value, size));
  REQUIRE(expected.size() == 3);
  CHECK(expected[1].as<float>()[0] == doctest::Approx(.3));
  std::string data;  // (C, T, H, W)
  for (int k = 0; k < 3; ++k)
    for (int t = 0; t < 3; ++t)
      for (int y = 0; y < 6; ++y)
        for (int x = 0; x < 5; ++x) {
          const auto v = static_cast<float>(value(t, y, x, k));
          data.append(reinterpret_cast<const char*>(&v), 4);
        }
  write_npy(scratch / "cthw.npy", "<f4", "(3, 3, 6, 5)", data);
  write_npy(scratch / "bcthw.npy", "<f4", "(1, 3, 3, 6, 5)", data);
  SourceOptions options;
  for (const char* layout : {"CTHW", "BCTHW"}) {
    options.layout = layout;
    const auto frames = frames_of((scratch / (layout[0] == 'B' ? "bcthw.npy" : "cthw.npy")).string(), options);
    REQUIRE(frames.size() == 3);
    for (size_t t = 0; t < 3; ++t) CHECK(same(frames[t], expected[t]));
  }
  options.layout = "";
  says(refused((scratch / "cthw.npy").string()), "state its axes, for example --layout CTHW");
  options.layout = "THW";
  says(refused((scratch / "cthw.npy").string(), options), "does not have the axes");
  options.layout = "XTHW";
  says(refused((scratch / "cthw.npy").string(), options), "is not made of");
}

TEST_CASE("video: float arrays lie in [0, 1] or state their range") {
  const Scratch scratch;
  const auto wide = [](int t, int y, int x, int k) { return 2 * scene(t, y, x, k) - 1; };
  const std::string file = write_f32(scratch / "wide.npy", wide, {2, 20, 20, 3});
  says(refused(file), "state their range, for example --range -1,1");
  SourceOptions options;
  options.range = {-1, 1};
  REQUIRE(frames_of(file, options).size() == 2);
  CHECK(frames_of(file, options)[0].zero == -1);
  const ClipOptions clip{.reference = options, .candidate = options};
  const ClipResult stated = compare_clips(
      file,
      write_f32(scratch / "w2.npy", [&](int t, int y, int x, int k) { return wide(t, y, x, k) * .98; }, {2, 20, 20, 3}),
      clip);
  const ClipResult unit = compare_clips(
      write_f32(scratch / "u1.npy", scene, {2, 20, 20, 3}),
      write_f32(scratch / "u2.npy", [&](int t, int y, int x, int k) { return (wide(t, y, x, k) * .98 + 1) / 2; },
                {2, 20, 20, 3}),
      {});
  CHECK(*stated.summary.psnr_mean == doctest::Approx(*unit.summary.psnr_mean).epsilon(1e-5));
  CHECK(*stated.summary.ssim_mean == doctest::Approx(*unit.summary.ssim_mean).epsilon(1e-6));
  const std::string holes = write_f32(
      scratch / "nan.npy", [](int t, int, int x, int) { return t == 1 && x == 3 ? std::nan("") : .5; }, {2, 20, 20, 3});
  says(refused(holes), "frame 1 holds NaN");
}

TEST_CASE("video: latents without a range have differences and neither PSNR nor SSIM") {
  const Scratch scratch;
  const Size size{2, 16, 16, 16};
  const auto latent = [](int t, int y, int x, int k) { return std::sin(t + y * .3 + x * .2 + k) * 3; };
  ClipOptions options;
  options.reference.layout = options.candidate.layout = "THWC";
  options.reference.no_range = options.candidate.no_range = true;
  options.measure.ranged = false;
  const ClipResult r =
      compare_clips(write_f32(scratch / "a.npy", latent, size),
                    write_f32(
                        scratch / "b.npy", [&](int t, int y, int x, int k) { return latent(t, y, x, k) * 1.01; }, size),
                    options);
  CHECK_FALSE(r.summary.psnr_mean);
  CHECK_FALSE(r.summary.ssim_mean);
  CHECK(*r.summary.rel_l2 == doctest::Approx(.01).epsilon(1e-4));
  options.reference.no_range = options.candidate.no_range = false;
  options.reference.range = options.candidate.range = {-3, 3};
  options.measure.ranged = true;
  CHECK(
      compare_clips((scratch / "a.npy").string(), (scratch / "b.npy").string(), options).summary.ssim_mean.value_or(0) >
      .9);
}

TEST_CASE("video: the usual array is read without LibTorch, and as LibTorch reads it") {
  const Scratch scratch;
  for (const int channels : {1, 3}) {
    const std::string file = write_u8(scratch / "a.npy", scene, {3, 14, 20, channels});
    const auto plain = open_plain_array(file, {}), whole = open_array(file, {});
    REQUIRE(plain);
    CHECK(plain->facts().format == whole->facts().format);
    CHECK(plain->facts().conversion == whole->facts().conversion);
    CHECK(plain->facts().kind == whole->facts().kind);
    CHECK(plain->facts().frames == whole->facts().frames);
    Frame a, b;
    for (int t = 0; t < 3; ++t) {
      REQUIRE((plain->read(a) && whole->read(b)));
      CHECK((a.same_size(b) && same_units(a, b) && a.bytes == b.bytes));
    }
    CHECK_FALSE(plain->read(a));
  }
  const std::string colour = write_u8(scratch / "b.npy", scene, {3, 14, 20, 3});
  CHECK_FALSE(open_plain_array(colour, {.range = std::array{0.0, 200.0}}));
  CHECK_FALSE(open_plain_array(colour, {.layout = "TWHC"}));
  CHECK_FALSE(open_plain_array(write_u8(scratch / "alpha.npy", scene, {3, 14, 20, 4}), {}));
  CHECK_FALSE(open_plain_array(write_f32(scratch / "f32.npy", scene, {3, 14, 20, 3}), {}));
}

TEST_CASE("video: damaged .npy files are refused in one line") {
  const Scratch scratch;
  const std::string file = write_u8(scratch / "a.npy", scene, {2, 20, 20, 3});
  const std::string all = read_text(file);
  for (size_t length = 0; length < all.size(); length += 97) {
    std::ofstream(scratch / "b.npy", std::ios::binary) << all.substr(0, length);
    CAPTURE(length);
    CHECK_FALSE(refused((scratch / "b.npy").string()).empty());
  }
  const auto with = [&](const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
    write_npy(scratch / "c.npy", descr, shape, std::string(2400, '\1'), fortran);
    return refused((scratch / "c.npy").string());
  };
  CHECK(with("|u1", "(2, 20, 20, 3)").empty());
  says(with("|u1", "(2, 20, 20, 3)", "True"), "Fortran order");
  says(with("|O", "(2, 20, 20, 3)"), "Python objects");
  says(with(">f4", "(2, 20, 20, 3)"), "big-endian");
  says(with("|u1", "(2, 20, 20, 4000000000000000000)"), "");
  says(with("|u1", "(200000, 20, 20, 3)"), "truncated");
  says(with("|u1", "(-2, 20, 20, 3)"), "not a shape");
  says(with("|u1", "(2, 20, 'x', 3)"), "not a shape");
  says(with("|u1", "(0, 20, 20, 3)"), "empty");
  says(with("|u1", "()"), "single number");
  says(with("<i4", "(1, 10, 20, 3)"), "cannot be frames");
}

TEST_CASE("video: y4m is read as coded, luma and RGB") {
  const Scratch scratch;
  const auto luma = [](int t, int y, int x) { return 16 + (t * 9 + x * 3 + 2 * y) % 220; };
  const std::string file = write_y4m(scratch / "a.y4m", {4, 18, 34, 1}, luma);
  SourceOptions options;
  options.luma = true;
  const auto frames = frames_of(file, options);
  REQUIRE(frames.size() == 4);
  CHECK(frames[0].channels == 1);
  bool equal = true;
  for (int t = 0; t < 4; ++t)
    for (int y = 0; y < 18; ++y)
      for (int x = 0; x < 34; ++x)
        equal = equal && frames[static_cast<size_t>(t)].as<uint8_t>()[y * 34 + x] == luma(t, y, x);
  CHECK(equal);
  CHECK(*frames[3].time == doctest::Approx(3 / 25.0));
  CHECK(frames_of(file)[0].channels == 3);
  CHECK(frames_of(write_y4m(scratch / "odd.y4m", {2, 17, 33, 1}, luma)).front().width == 33);
  cut(scratch / "a.y4m", scratch / "b.y4m", .7);
  says(refused((scratch / "b.y4m").string()), "cannot be decoded");
}

TEST_CASE("video: our own MP4 is read back, cut anywhere it is refused") {
  const Scratch scratch;
  {
    const auto writer = video_codecs().create(scratch / "a.mp4", 64, 48, 24);
    for (int t = 0; t < 30; ++t) writer->write(picture(64, 48, t));
    writer->close();
  }
  const auto frames = frames_of((scratch / "a.mp4").string());
  CHECK(frames.size() == 30);
  CHECK(same(frames_of((scratch / "a.mp4").string()).back(), frames.back()));  // the same at every reading
  CHECK(*open_frames((scratch / "a.mp4").string(), {})->facts().rate == doctest::Approx(24));
  for (const double share : {.02, .1, .3, .5, .7, .9, .97}) {
    CAPTURE(share);
    cut(scratch / "a.mp4", scratch / "b.mp4", share);
    CHECK_FALSE(refused((scratch / "b.mp4").string()).empty());
  }
  {
    const auto abandoned = video_codecs().create(scratch / "c.mp4", 64, 48, 24);
    abandoned->write(picture(64, 48, 0));
  }
  CHECK_FALSE(fs::exists(scratch / "c.mp4"));
  CHECK_THROWS_AS(video_codecs().create(scratch / "no" / "d.mp4", 64, 48, 24), Error);
}

TEST_CASE("video: the published thresholds are the program's own") {
  const VideoThresholds file = read_thresholds(std::string(PARITY_SOURCE_DIR) + "/reports/video-thresholds.json"), own;
  REQUIRE(file.psnr.size() == own.psnr.size());
  for (size_t i = 0; i < own.psnr.size(); ++i) {
    CHECK(file.psnr[i].above == own.psnr[i].above);
    CHECK(file.psnr[i].rating == own.psnr[i].rating);
    CHECK(file.ssim[i].above == own.ssim[i].above);
    CHECK(file.ssim[i].rating == own.ssim[i].rating);
  }
  CHECK(rating_of(36.63, own.psnr) == "very good");  // the numbers of the 13-frame report this tool replaces
  CHECK(rating_of(.9937, own.ssim) == "excellent");
}
