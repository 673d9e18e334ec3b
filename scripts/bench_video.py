"""Frames compared a second, beside ffmpeg's filters and scikit-image: the same clips, one run, minimum of the repeats.

    .venv-video/bin/python scripts/bench_video.py build/release/parity-check [--frames 57] [--repeats 3] [--json FILE]

Compressed: two H.264 files. Raw: uint8 RGB arrays (.npy) for us and scikit-image, raw RGB video for ffmpeg. Ours computes everything that
`parity-check video --metrics-only` prints: MSE, PSNR, Gaussian SSIM and MS-SSIM on RGB, exact percentiles, bias, flicker, diagnosis.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import skimage.metrics


def run(*command):
    subprocess.run([str(c) for c in command], check=True, capture_output=True)


def fastest(work, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def ffmpeg(inputs, graph):
    run("ffmpeg", "-v", "error", "-nostdin", *inputs, "-lavfi", graph, "-f", "null", "-")


def clips(folder, size, frames):
    """A moving picture with texture, and the same encoded badly; RGB arrays of both."""
    width, height = size
    source = f"testsrc2=size={width}x{height}:rate=24,noise=alls=12:allf=t"
    run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", frames, "-c:v", "libx264", "-preset", "veryfast", "-crf", "14", "-pix_fmt", "yuv420p", folder / "r.mp4")
    run("ffmpeg", "-v", "error", "-y", "-i", folder / "r.mp4", "-c:v", "libx264", "-preset", "veryfast", "-crf", "30", folder / "c.mp4")
    for name in "rc":
        run("ffmpeg", "-v", "error", "-y", "-i", folder / f"{name}.mp4", "-f", "rawvideo", "-pix_fmt", "rgb24", folder / f"{name}.rgb")
        np.save(folder / f"{name}.npy", np.fromfile(folder / f"{name}.rgb", np.uint8).reshape(frames, height, width, 3))


def measure(program, size, frames, repeats):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        clips(folder, size, frames)
        mp4 = ["-i", folder / "r.mp4", "-i", folder / "c.mp4"]
        raw = [x for n in "rc" for x in ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-i", folder / f"{n}.rgb")]
        both = "[0:v]split[a][b];[1:v]split[c][d];[a][c]psnr,nullsink;[b][d]ssim"
        ours = lambda suffix, *more: run(program, "video", folder / f"r.{suffix}", folder / f"c.{suffix}", "--metrics-only", "-q", *more)  # noqa: E731
        r, c = np.load(folder / "r.npy", mmap_mode="r"), np.load(folder / "c.npy", mmap_mode="r")
        few = min(frames, 6)

        def scikit():
            for a, b in zip(r[:few], c[:few]):
                skimage.metrics.structural_similarity(a, b, data_range=255, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False)

        seconds = {
            "H.264: ffmpeg, decoding both": fastest(lambda: ffmpeg(mp4, "[0:v]nullsink;[1:v]null"), repeats),
            "H.264: ffmpeg, psnr and ssim (luma and chroma)": fastest(lambda: ffmpeg(mp4, both), repeats),
            "H.264: parity-check, everything": fastest(lambda: ours("mp4"), repeats),
            "H.264: parity-check, without MS-SSIM and diagnosis": fastest(lambda: ours("mp4", "--no-ms-ssim", "--no-diagnosis"), repeats),
            "H.264: parity-check, --space luma --ssim ffmpeg": fastest(lambda: ours("mp4", "--space", "luma", "--ssim", "ffmpeg", "--no-ms-ssim", "--no-diagnosis"), repeats),
            "raw: ffmpeg, psnr and ssim": fastest(lambda: ffmpeg(raw, both), repeats),
            "raw: parity-check, everything": fastest(lambda: ours("npy"), repeats),
            "raw: parity-check, without MS-SSIM and diagnosis": fastest(lambda: ours("npy", "--no-ms-ssim", "--no-diagnosis"), repeats),
        }
        rates = {what: frames / s for what, s in seconds.items()}
        rates["raw: scikit-image, Gaussian SSIM alone"] = few / fastest(scikit, 1)
    return rates


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--frames", type=int, default=57)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--size", default="960x544,1920x1080")
    parser.add_argument("--json")
    options = parser.parse_args()
    sizes = [tuple(map(int, s.split("x"))) for s in options.size.split(",")]
    tables = {f"{w}x{h}": measure(options.program, (w, h), options.frames, options.repeats) for w, h in sizes}
    print("| frames/s | " + " | ".join(tables) + " |\n|---|" + "--:|" * len(tables))
    for what in next(iter(tables.values())):
        print(f"| {what} | " + " | ".join(f"{t[what]:.1f}" for t in tables.values()) + " |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(tables, indent=1) + "\n")
