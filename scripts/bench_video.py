"""Frames compared a second, beside ffmpeg's filters and scikit-image: the same clips, one run, minimum of the repeats.

    .venv-video/bin/python scripts/bench_video.py build/release/parity-check [--frames 57] [--repeats 3] [--json FILE] [--vmaf FFMPEG]

Runs take turns, so that a busy machine slows all of them down. `--vmaf`: a program ffmpeg with libvmaf, such as the one in the package imageio-ffmpeg.

Compressed: two H.264 files. Raw: uint8 RGB arrays (.npy) for us and scikit-image, raw RGB video for ffmpeg. Ours computes everything that
`parity-check video --metrics-only` prints: MSE, PSNR, Gaussian SSIM and MS-SSIM on RGB, exact percentiles, bias, flicker, diagnosis.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile
import time

import numpy as np
import skimage.metrics


def run(*command):
    subprocess.run([str(c) for c in command], check=True, capture_output=True)


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def fastest(works, repeats):
    """{name: (seconds, seconds of processors)}, the least of the repeats; all take a turn before the first is run again."""
    times = {name: (float("inf"), float("inf")) for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start, cpu = time.perf_counter(), cpu_seconds()
            work()
            times[name] = tuple(map(min, times[name], (time.perf_counter() - start, cpu_seconds() - cpu)))
    return times


def ffmpeg(inputs, graph, program="ffmpeg"):
    run(program, "-v", "error", "-nostdin", *inputs, "-lavfi", graph, "-f", "null", "-")


def clips(folder, size, frames):
    """A moving picture with texture, and the same encoded badly; RGB arrays of both."""
    width, height = size
    source = f"testsrc2=size={width}x{height}:rate=24,noise=alls=12:allf=t"
    run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", frames, "-c:v", "libx264", "-preset", "veryfast", "-crf", "14", "-pix_fmt", "yuv420p", folder / "r.mp4")
    run("ffmpeg", "-v", "error", "-y", "-i", folder / "r.mp4", "-c:v", "libx264", "-preset", "veryfast", "-crf", "30", folder / "c.mp4")
    for name in "rc":
        run("ffmpeg", "-v", "error", "-y", "-i", folder / f"{name}.mp4", "-f", "rawvideo", "-pix_fmt", "rgb24", folder / f"{name}.rgb")
        np.save(folder / f"{name}.npy", np.fromfile(folder / f"{name}.rgb", np.uint8).reshape(frames, height, width, 3))


def measure(program, size, frames, repeats, vmaf):
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

        works = {
            "H.264: ffmpeg, decoding both": lambda: ffmpeg(mp4, "[0:v]nullsink;[1:v]null"),
            "H.264: ffmpeg, psnr and ssim (luma and chroma)": lambda: ffmpeg(mp4, both),
            "H.264: parity-check, everything": lambda: ours("mp4"),
            "H.264: parity-check, without MS-SSIM and diagnosis": lambda: ours("mp4", "--no-ms-ssim", "--no-diagnosis"),
            "H.264: parity-check, --space luma --ssim ffmpeg": lambda: ours("mp4", "--space", "luma", "--ssim", "ffmpeg", "--no-ms-ssim", "--no-diagnosis"),
            "raw: ffmpeg, psnr and ssim": lambda: ffmpeg(raw, both),
            "raw: parity-check, everything": lambda: ours("npy"),
            "raw: parity-check, without MS-SSIM and diagnosis": lambda: ours("npy", "--no-ms-ssim", "--no-diagnosis"),
        }
        if vmaf:
            works["H.264: ffmpeg, libvmaf"] = lambda: ffmpeg(mp4, "[1:v][0:v]libvmaf=n_threads=2", vmaf)
        works["raw: scikit-image, Gaussian SSIM alone"] = scikit
        seconds = fastest(works, repeats)
        counts = {what: few if what.startswith("raw: scikit") else frames for what in works}
        rates = {what: (counts[what] / wall, 1000 * cpu / counts[what]) for what, (wall, cpu) in seconds.items()}
    return rates


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--frames", type=int, default=57)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--size", default="960x544,1920x1080")
    parser.add_argument("--vmaf")
    parser.add_argument("--json")
    options = parser.parse_args()
    sizes = [tuple(map(int, s.split("x"))) for s in options.size.split(",")]
    tables = {f"{w}x{h}": measure(options.program, (w, h), options.frames, options.repeats, options.vmaf) for w, h in sizes}
    print("| frames/s (ms of processors a frame) | " + " | ".join(tables) + " |\n|---|" + "--:|" * len(tables))
    for what in next(iter(tables.values())):
        print(f"| {what} | " + " | ".join("{:.1f} ({:.1f})".format(*t[what]) for t in tables.values()) + " |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(tables, indent=1) + "\n")
