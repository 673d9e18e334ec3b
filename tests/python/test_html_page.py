"""report.html in a browser, as people use it: at a desk and on a phone, light and dark, by mouse and by keys."""
import math

import pytest

from html_page import CHROMIUM, CONTRAST, PAIRS, Opened, bits, broken, chromium, compare, enlarged, shares_of_limits, tensors, with_sources  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
VIEWS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")]
ROWS, SECONDS, BYTES = 5000, 2, 5_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def port(folder):  # a wrong activation twice in a small GPT-2
    return compare(folder, "port", PAIRS / "gpt2.bf16.h5", PAIRS / "gpt2.bf16.fault.gelu-erf.h5")


@pytest.fixture(scope="module")
def plain(folder):
    return compare(folder, "plain", *tensors(folder))


def check_quiet(opened, _):
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate("document.documentElement.dataset.ready") == "yes"
    assert opened.wrong == []
    assert "[object" not in opened.page.locator("body").inner_text()  # an element written as text


def check_verdict(opened, report):
    first = report["first_divergence"]
    assert opened.page.locator(".verdict").inner_text().startswith("✗ FAIL: 2 of 22")
    finding = opened.page.locator(".finding").inner_text()
    assert finding.startswith(f"First divergence: {first['path']} ") and first["diagnosis"] in finding
    assert opened.chosen == first["path"]
    cells = opened.texts("#environment tbody tr:has(td:first-child:has-text('producer')) td")
    assert cells[1] == report["reference"]["producer"] and cells[2] == report["candidate"]["producer"]


def check_no_sideways_scroll(opened, _):
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    small = opened.page.evaluate("[...document.querySelectorAll('main *')].filter(e => e.childNodes.length && e.checkVisibility() && parseFloat(getComputedStyle(e).fontSize) < 11).length")
    assert small == 0, "text below 11 px"


def check_contrast(opened, _):
    assert opened.page.evaluate(CONTRAST) == []


def check_chart(opened, report):
    points = opened.chart("chart.data.datasets.flatMap(d => d.data.map(p => [p.op.path, p.op.call, p.y]))")
    floor = opened.chart("chart.scales.y.min")
    assert opened.chart("chart.scales.y.type") == "logarithmic"
    shown = {(path, call): y for path, call, y in points}
    for op in report["ops"]:
        share = shares_of_limits(op)
        if share is not None:
            assert math.isclose(shown[op["path"], op["call"]], max(share, floor), rel_tol=1e-3), op["path"]
    assert len(points) == len(report["ops"])


def place_of(opened, path):  # of the point of `path`, in the window
    opened.page.locator("#error-chart").scroll_into_view_if_needed()
    return opened.chart(f"""(() => {{ const box = chart.canvas.getBoundingClientRect();
      for (const [i, d] of chart.data.datasets.entries()) for (const [k, p] of d.data.entries())
        if (p.op.path === {path!r}) {{ const at = chart.getDatasetMeta(i).data[k]; return [box.x + at.x, box.y + at.y]; }} }})()""")


def check_hover_and_click(opened, report):
    path = report["ops"][5]["path"]
    opened.page.mouse.move(*place_of(opened, path))
    opened.page.wait_for_timeout(100)
    assert opened.chart("chart.tooltip.opacity") == 1 and opened.chart("chart.tooltip.title[0]") == path
    opened.page.mouse.click(*place_of(opened, path))
    assert opened.chosen == path
    assert opened.texts("#op-table tr.chosen button")[0] == path


def check_zoom(opened, _):
    whole = opened.chart("[chart.scales.x.min, chart.scales.x.max]")
    opened.page.locator("#error-chart").scroll_into_view_if_needed()
    box = opened.page.locator("#error-chart").bounding_box()
    opened.page.mouse.move(box["x"] + .4 * box["width"], box["y"] + 150)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + .8 * box["width"], box["y"] + 150, steps=4)
    opened.page.mouse.up()
    low, high = opened.chart("[chart.scales.x.min, chart.scales.x.max]")
    assert whole[0] < low < high < whole[1] and high - low < .6 * (whole[1] - whole[0])
    opened.page.get_by_role("button", name="The whole model").click()
    assert opened.chart("[chart.scales.x.min, chart.scales.x.max]") == whole


def check_tabs(opened, report):
    opened.page.get_by_role("tab", name="Free-running").click()
    op = report["ops"][10]
    limit = next(x["value"] for x in op["limits"] if x["statistic"] == "candidate_error")
    y = opened.chart(f"chart.data.datasets.flatMap(d => d.data).find(p => p.op.path === {op['path']!r}).y")
    assert math.isclose(y, op["free"]["rel_l2"] / limit, rel_tol=1e-3)
    opened.page.get_by_role("tab", name="Local").click()


def check_sort_and_filter(opened, report):
    page = opened.page
    if page.viewport_size["width"] > 960:  # the other columns are not shown on a phone
        page.locator("[data-column=free]").click()
        wanted = sorted(report["ops"], key=lambda op: -op["free"]["rel_l2"])[0]["path"]
        assert opened.texts("#op-table tbody .name button")[0] == (wanted or "(the model’s result)")
        page.locator("[data-column=index]").click()
    page.locator("[data-verdict=fail]").click()
    assert opened.texts("#op-table tbody .name button") == [op["path"] for op in report["ops"] if op["verdict"] == "fail"]
    page.locator("[data-verdict=fail]").click()
    page.locator("#filter-kind").select_option("linear")
    linear = [op["path"] for op in report["ops"] if op["kind"] == "linear"]
    assert opened.texts("#op-table tbody .name button") == linear and len(linear) > 3
    page.locator("#filter-path").fill("*.h.1.*c_fc")
    assert opened.texts("#op-table tbody .name button") == ["transformer.h.1.mlp.c_fc"]
    page.locator("#filter-path").fill("")
    page.locator("#filter-kind").select_option("")
    assert page.locator("#op-table tbody tr").count() == len(report["ops"])


def check_keys(opened, report):
    red = [op["path"] for op in report["ops"] if op["verdict"] == "fail"]
    opened.page.locator("#to-first").click()
    for key, path in (("n", red[1]), ("p", red[0])):
        opened.page.keyboard.press(key)
        assert opened.chosen == path
    opened.page.keyboard.press("/")
    assert opened.page.evaluate("document.activeElement.id") == "filter-path"
    opened.page.keyboard.press("Escape")
    opened.page.locator("#error-chart").focus()
    opened.page.keyboard.press("ArrowRight")
    assert opened.chosen == report["ops"][[op["path"] for op in report["ops"]].index(red[0]) + 1]["path"]
    opened.page.keyboard.press("t")
    assert opened.theme != opened.scheme
    opened.page.keyboard.press("t")


def check_op(opened, report):
    op = next(op for op in report["ops"] if op["verdict"] == "fail")
    opened.page.locator("#to-first").click()
    rows = [line.split("\t") for line in opened.texts("#op .worst tbody tr")]
    assert len(rows) == len(op["worst"]) == 8
    for row, element in zip(rows, op["worst"]):
        assert row[0] == str(element["index"]) and float(row[1]) == element["reference"] and float(row[3]) == element["candidate"]
        assert row[2] == bits(element["reference"], "bf16") and row[4] == bits(element["candidate"], "bf16")
    assert opened.texts("#op .explanations tbody tr")[0].startswith(op["explanations"][0]["fault"])
    assert opened.texts("#op .command code") == [op["rerun"]]
    assert op["limits"][0]["origin"] in opened.texts("#op .limits tbody tr")[0]
    bars = opened.page.evaluate("Chart.getChart(document.querySelector('#op canvas')).data.datasets[0].data")
    assert bars == op["histogram"]["counts"] and sum(bars) + op["histogram"]["equal"] == op["forced"]["count"]


def check_blocks(opened, report):
    red = [op["path"] for op in report["ops"] if op["verdict"] == "fail"]
    assert opened.page.eval_on_selector_all("#model button.block.fail", "all => all.map(b => b.title)") == red
    opened.page.locator("#model button.block.fail").last.click()
    assert opened.chosen == red[-1]


CHECKS = [check_quiet, check_verdict, check_no_sideways_scroll, check_contrast, check_chart, check_hover_and_click, check_zoom, check_tabs, check_sort_and_filter,
          check_keys, check_op, check_blocks, check_no_sideways_scroll, check_contrast, check_quiet]


@pytest.mark.parametrize("width, scheme", VIEWS)
def test_a_port(chromium, port, width, scheme):
    with Opened(chromium, port[0], width, scheme) as opened:
        assert opened.theme == scheme
        for check in CHECKS:
            check(opened, port[1])


def pair_and_download(opened, target):
    page = opened.page
    page.locator("[data-side=reference] button", has_text="lonely").click()
    page.locator("[data-side=candidate] button", has_text="stranger").click()
    assert page.locator("[data-side] button").count() == 0
    page.locator("#pairing details summary").click()
    page.get_by_role("button", name="Unpair blocks.3.out").click()
    assert opened.texts("[data-side=reference] button") == ["blocks.3.out"]
    with page.expect_download() as download:
        page.locator("#download-map").click()
    assert download.value.suggested_filename == "pairs.map"
    download.value.save_as(target)
    page.get_by_role("button", name="Pair again blocks.3.out").click()
    page.get_by_role("button", name="Unpair lonely").click()
    assert opened.texts("[data-side] button") == ["lonely", "stranger"]


@pytest.mark.parametrize("width", [1400, 390])
def test_pairs_by_hand_become_a_map_that_compare_takes(chromium, plain, folder, width):
    with Opened(chromium, plain[0], width) as opened:
        pair_and_download(opened, folder / "pairs.map")
        check_quiet(opened, None)
        check_no_sideways_scroll(opened, None)
    lines = [line for line in (folder / "pairs.map").read_text().splitlines() if not line.startswith("#")]
    assert lines == ["lonely = stranger"]
    _, again = compare(folder, "mapped", *tensors(folder), "--map", str(folder / "pairs.map"))
    assert {op["path"]: op["candidate_path"] for op in again["ops"]}["lonely"] == "stranger"


LINES = "reference modeling_llama.py:312 in forward · candidate attention.cpp:88"


@pytest.mark.parametrize("width", [1400, 390])
def test_lines_of_source_and_witnesses(chromium, port, folder, width):
    """In the headline, beside each cause and in an op's details."""
    page = with_sources(port[0], "modeling_llama.py:312 in forward", "attention.cpp:88", "paired by content 0.9998, order (confidence 0.97)", folder / "sources.html")
    with Opened(chromium, page, width) as opened:
        opened.page.keyboard.press("n")
        check_quiet(opened, None)
        check_no_sideways_scroll(opened, None)
        shown = opened.texts(".sources")
        assert len(shown) >= 3 and set(shown) == {LINES}, shown


@pytest.mark.parametrize("width", [1400, 390])
def test_5000_ops(chromium, port, folder, width):
    page = enlarged(port[0], ROWS, folder / "large.html")
    assert page.stat().st_size < BYTES
    with Opened(chromium, page, width) as opened:
        opened.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        wall, work = opened.page.evaluate("performance.now()") / 1000, opened.worked()
        assert opened.page.locator("#op-table tbody tr").count() == 100
        check_no_sideways_scroll(opened, None)
        opened.page.keyboard.press("n")
        check_quiet(opened, None)
    print(f"\n{ROWS} ops, {page.stat().st_size / 1e6:.1f} MB, {width} px: {work:.2f} s of work, {wall:.2f} s until drawn")
    assert work < SECONDS  # processor time: other programs share the machine


FAULTS = [  # what is broken, by what; which check sees it
    ("begin();\n})();", "begin();\nconsole.error('x');\n})();", check_quiet),
    ("begin();\n})();", "begin();\nfetch('https://example.org/').catch(() => 0);\n})();", check_quiet),
    ("el('strong', null, DATA.sentence)", "el('strong', null, [[[el('b', null, '')]]].toString())", check_quiet),
    ("el('strong', null, DATA.sentence)", "el('strong', null, '')", check_verdict),
    ("*{box-sizing:border-box}", "*{box-sizing:border-box}main{min-width:1600px}", check_no_sideways_scroll),
    ("--soft:#57606a", "--soft:#8d96a0", check_contrast),
    ("type: 'logarithmic'", "type: 'linear'", check_chart),
    ("[1 - measured, 1 - value]", "[measured, value]", check_chart),
    ("items[0]?.raw.op.name", "items[0]?.raw.op.kind", check_hover_and_click),
    ("if (near) this.select(", "if (!near) this.select(", check_hover_and_click),
    ("return this.zoomTo(a, b);", "return this.zoomTo(-0.5, PLACES - 0.5);", check_zoom),
    ("op.freely = isNumber(free) ? free / op.yardstick", "op.freely = isNumber(free) ? free", check_tabs),
    ("this.verdicts.has(op.verdict))", "true)", check_sort_and_filter),
    ("COLLATOR.compare(a, b) : size(a) - size(b)", "COLLATOR.compare(a, b) : 0 * size(a)", check_sort_and_filter),
    ("n: () => toFinding(1)", "n: () => toFinding(-1)", check_keys),
    ("hex(bits >>> 16, 4)", "hex(bits >>> 15, 4)", check_op),
    ("datasets: [{ data: counts", "datasets: [{ data: counts.slice(1)", check_op),
    ("class: `block ${tone(op.verdict)}`", "class: `block pass`", check_blocks),
]


@pytest.mark.parametrize("old, new, check", FAULTS)
def test_each_check_goes_red(chromium, port, folder, old, new, check):
    with Opened(chromium, broken(port[0], old, new, folder / "broken.html")) as opened:
        with pytest.raises(Exception):
            check(opened, port[1])
