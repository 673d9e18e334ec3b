"""Pages of report.html for the tests in a browser: made by the program, made larger, or broken on purpose."""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct

import numpy
import pytest
from playwright.sync_api import sync_playwright
import program

ROOT = pathlib.Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PAIRS = ROOT / "reference_dumps/selftest"
DATA = re.compile(r'(?<=<script type="application/json" id="data">).*?(?=</script>)', re.S)
SCRIPT = re.compile(r"(?<=</script>\n<script>).*?(?=</script>)", re.S)

# Contrast of every text with what lies behind it (WCAG 2.2, 1.4.3).
CONTRAST = """() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4).reduce((s, x, i) => s + x * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest('script, style, noscript, :disabled, .unseen, .skip')) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize), [a, b] = [light(rgb(style.color)), light(behind(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < (size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5)) low.push(`${e.tagName}.${e.className}: ${e.textContent.slice(0, 30)} ${((a + .05) / (b + .05)).toFixed(2)}`);
  }
  return low;
}"""


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def compare(folder, name, reference, candidate, *more, environment=None):
    """(page, report as JSON) of a comparison."""
    page, report = folder / f"{name}.html", folder / f"{name}.json"
    run = program.run("compare", reference, candidate, "--html", page, "--json", report, "-q", *more, env=os.environ | (environment or {}))
    assert run.returncode in (0, 1, 3), run.stderr
    return page, json.loads(report.read_text())


def tensors(folder):
    """Two sets of tensors; on each side one is left over."""
    random = numpy.random.default_rng(1)
    shared = {f"blocks.{i}.out": random.standard_normal((4, 6)).astype(numpy.float32) for i in range(5)}
    reference, candidate = folder / "reference.npz", folder / "candidate.npz"
    numpy.savez(reference, **shared, lonely=random.standard_normal((3, 5)).astype(numpy.float32))
    numpy.savez(candidate, **(shared | {"blocks.2.out": shared["blocks.2.out"] * numpy.float32(1.01)}), stranger=random.standard_normal((3, 5)).astype(numpy.float32))
    return reference, candidate


def enlarged(page, rows, out):
    """The same report with its rows again and again under other names, `rows` in all."""
    text = page.read_text()
    data = json.loads(DATA.search(text)[0])
    ops, strings, old = data["ops"], data["strings"], data["ops"]["n"]

    def tile(column):
        return {key: tile(value) for key, value in column.items()} if isinstance(column, dict) else [column[i % old] for i in range(rows)]

    ops = {name: tile(column) for name, column in ops.items() if name != "n"}
    ops["index"] = list(range(rows))
    for i in range(rows):
        strings.append(f"model.{i // old}.{strings[ops['path'][i]] or 'out'}")
        ops["path"][i] = ops["candidate"][i] = len(strings) - 1
    data["ops"] = ops | {"n": rows}
    for cause in data["causes"]["shown"]:
        cause["rows"] = [row for first in cause["rows"] for row in range(first, rows, old)]
    inside = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    out.write_text(DATA.sub(lambda _: inside, text))
    return out


def with_sources(page, reference, candidate, witnesses, out):
    """The same report with these lines of source on each side of every row, and these witnesses of its pair."""
    text = page.read_text()
    data = json.loads(DATA.search(text)[0])
    for column, value in (("source", reference), ("candidate_source", candidate), ("pairing", witnesses)):
        data["strings"].append(value)
        data["ops"][column] = [len(data["strings"]) - 1] * data["ops"]["n"]
    inside = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    out.write_text(DATA.sub(lambda _: inside, text))
    return out


def broken(page, old, new, out):
    """The page with a fault seeded into its script or style; its content policy lets the script run all the same."""
    text = page.read_text()
    assert old in text, f"the seeded fault does not apply: {old}"
    text = text.replace(old, new)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.search(text)[0].encode()).digest()).decode()
    out.write_text(re.sub(r"sha256-[A-Za-z0-9+/=]+", f"sha256-{digest}", text, count=1))
    return out


def bits(x, dtype):
    """How the page must write a number's bits."""
    word = struct.unpack(">I", struct.pack(">f", x))[0]
    return f"0x{word >> 16:04x}" if dtype == "bf16" else f"0x{word:08x}"


def shares_of_limits(op):
    """The op's local error over its limit, as the chart must show it: from the report's JSON by other code."""
    out = []
    for limit in op["limits"]:
        if limit["statistic"] in ("own_inputs_rel_l2", "free.rel_l2"):
            continue
        measured = limit["measured"]
        if measured is None:
            measured = op["forced"].get(limit["statistic"])
        if measured is None:
            continue
        over, allowed = (1 - measured, 1 - limit["value"]) if limit["at_least"] else (measured, limit["value"])
        out.append(abs(over) / allowed if allowed > 0 else 0 if over == 0 else float("inf"))
    return max(out, default=None)


class Opened:
    """A page, and all that it should not have done."""

    def __init__(self, browser, file, width=1400, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
        self.page = self.context.new_page()
        self.scheme, self.wrong = scheme, []
        self.page.on("console", lambda m: self.wrong.append(f"console: {m.text}"))
        self.page.on("pageerror", lambda e: self.wrong.append(f"error: {e}"))
        self.page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:")) or self.wrong.append(f"request: {r.url}"))
        self.protocol = self.context.new_cdp_session(self.page)
        self.protocol.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(file.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def texts(self, selector):
        return [t.strip() for t in self.page.locator(selector).all_inner_texts()]

    def chart(self, expression):
        return self.page.evaluate(f"(() => {{ const chart = Chart.getChart('error-chart'); return {expression}; }})()")

    def worked(self):
        """Processor seconds of the page's thread: parsing, script, layout, drawing."""
        return {m["name"]: m["value"] for m in self.protocol.send("Performance.getMetrics")["metrics"]}["TaskDuration"]

    @property
    def theme(self):
        return self.page.evaluate("document.documentElement.dataset.theme")

    @property
    def chosen(self):
        return self.page.locator("#op h3").inner_text()
