"""The side-by-side video of `parity-check video` plays in a browser."""
import json
import re
import shutil
import subprocess

import pytest

from test_video import DISTORTED, PRISTINE, PROGRAM, cut, scratch  # noqa: F401


PAGE = """<!doctype html><body><pre id=log></pre><canvas id=c width=64 height=16></canvas><script>
const log = s => document.getElementById('log').textContent += s + '\\n', v = document.createElement('video');
v.muted = true; v.src = 'side-by-side.mp4'; document.body.append(v);
v.onerror = () => log('error ' + v.error.message);
v.onloadeddata = () => { log('size ' + v.videoWidth + 'x' + v.videoHeight); v.play().catch(e => log('play ' + e)); };
v.ontimeupdate = () => {
  const x = document.getElementById('c').getContext('2d'); x.drawImage(v, 0, 0, 64, 16);
  const d = x.getImageData(0, 0, 64, 16).data; let least = 255, most = 0;
  for (let i = 0; i < d.length; i += 4) { least = Math.min(least, d[i]); most = Math.max(most, d[i]); }
  if (v.currentTime > 0.3 && !window.done) { window.done = 1; log('played ' + v.currentTime.toFixed(2) + ' contrast ' + (most - least)); }
};</script>"""


def test_side_by_side_plays_in_chromium(scratch):  # noqa: F811
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("needs chromium")
    out = scratch / "out"
    subprocess.run([PROGRAM, "video", str(cut(PRISTINE, scratch / "r.mp4")), str(cut(DISTORTED, scratch / "c.mp4")), "--out", str(out), "-q"], check=True)
    stream = json.loads(subprocess.run(["ffprobe", "-v", "error", "-show_streams", "-of", "json", str(out / "side-by-side.mp4")], check=True, capture_output=True).stdout)["streams"][0]
    assert (stream["codec_name"], stream["pix_fmt"]) == ("h264", "yuv420p") and stream["profile"] in ("High", "Main", "Constrained Baseline")
    data = (out / "side-by-side.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # plays before it is loaded whole
    (out / "page.html").write_text(PAGE)
    for budget in (8000, 60000, 600000):  # of virtual milliseconds, which run ahead of decoding on a busy machine
        text = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required", "--allow-file-access-from-files",
                               f"--virtual-time-budget={budget}", f"--user-data-dir={scratch / 'profile'}", "--dump-dom", (out / "page.html").as_uri()], capture_output=True, text=True, timeout=120).stdout
        log = re.search("<pre id=\"log\">(.*?)</pre>", text, re.S).group(1)
        if "played" in log or "error" in log:
            break
    assert f"size {stream['width']}x{stream['height']}" in log and "error" not in log, log
    played = re.search(r"played ([\d.]+) contrast (\d+)", log)
    assert played and int(played[2]) > 60, log
