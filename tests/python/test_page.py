"""HTML pages and SVG flame graphs in a real browser: their numbers match the files, and names are never executed."""

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from conftest import FIXTURES
from test_run import RUNS, parts, rows

MARKUP = "</script><img src=x onerror=alert(1)>"
BIDI = "admin\u202e\u2066nimda"
CONTROL = "bell\x07esc\x1b[31m\u2028end"
LONG = "L" * 9_999 + "!"
HOSTILE = [MARKUP, BIDI, CONTROL, LONG, '"><b>bold</b>', "a;b &lt;i&gt;", "__proto__", "constructor"]

# Stacks, outermost function first. `again` is recursive.
SIDE_A = {
    ("main", "load", "parse"): 10,
    ("main", "load", "parse", "alloc"): 5,
    ("main", "work", "grow"): 20,
    ("main", "work", "again", "again", "again"): 6,
    ("main", "work", "again"): 3,
    ("main", "work", "again", "grow"): 2,
    ("main", "gone"): 7,
}
SIDE_B = {
    ("main", "load", "parse"): 10,
    ("main", "load", "parse", "alloc"): 5,
    ("main", "work", "grow"): 60,
    ("main", "work", "again", "again", "again"): 6,
    ("main", "work", "again"): 3,
    ("main", "work", "again", "grow"): 2,
    ("main", "fresh"): 9,
}
WITH_HOSTILE = {**SIDE_A, **{("main", name): 11 + i for i, name in enumerate(HOSTILE)}}
VIEWS = ["icicle", "flame", "inverted", "sandwich", "table"]


def sums(stacks):
    """Self and total of every function; recursive calls count once per stack."""
    own, total = Counter(), Counter()
    for stack, count in stacks.items():
        own[stack[-1]] += count
        for name in set(stack):
            total[name] += count
    return own, total


def folded(path, stacks):
    path.write_text("".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks.items()), encoding="utf-8")
    return path


def speedscope(path, stacks, unit="milliseconds"):
    """Writes stacks with weights in milliseconds, which can be compared as time. Names may contain any character."""
    names = sorted({name for stack in stacks for name in stack})
    profile = {
        "type": "sampled", "name": "run", "unit": unit, "startValue": 0, "endValue": sum(stacks.values()),
        "samples": [[names.index(name) for name in stack] for stack in stacks], "weights": list(stacks.values()),
    }  # fmt: skip
    schema = "https://www.speedscope.app/file-format-schema.json"
    shared = {"frames": [{"name": name} for name in names]}
    path.write_text(json.dumps({"$schema": schema, "shared": shared, "profiles": [profile]}))
    return path


@pytest.fixture
def view(laggard, tmp_path):
    """Creates an HTML page from files. They are copied first, because an index is written next to each trace."""

    def make(*files):
        page = tmp_path / "page.html"
        copies = []
        for number, file in enumerate(files):
            copy = tmp_path / f"{number}" / Path(file).name
            copy.parent.mkdir(exist_ok=True)
            copies.append(shutil.copy(file, copy))
        laggard("view", *copies, "-o", page, "--force")
        return page

    return make


@pytest.fixture
def shots(tmp_path):
    """Directory for screenshots."""
    place = Path(os.environ.get("LAGGARD_SHOTS", tmp_path))
    place.mkdir(parents=True, exist_ok=True)
    return place


def percent(share):
    return f"{100 * share:.1f} %"


def shown(name):
    """A name as displayed, with invisible characters escaped."""
    hidden = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
    return re.sub(hidden, lambda found: f"\\u{{{ord(found[0]):x}}}", name)


def painted(page):
    """Waits until the canvas is redrawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def table(page):
    """The function table: cell texts by function name and column title."""
    painted(page)
    heads = page.locator(".functions thead th").all_inner_texts()
    cells = page.evaluate(
        "[...document.querySelectorAll('.functions tbody tr:not(.space)')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert page.locator(".functions").get_attribute("aria-rowcount") == str(len(cells) + 1), "rows are missing"
    # A share column has the title "%" and belongs to the previous column.
    titles = [heads[i - 1].strip(" ▾▴") + " %" if head == "%" else head.strip(" ▾▴") for i, head in enumerate(heads)]
    return {row[0]: dict(zip(titles, row)) for row in cells}


def state_of(page):
    """The fields of the URL hash, after it was written."""
    page.wait_for_timeout(250)
    hash_part = page.url.partition("#")[2]
    return dict(field.split("=", 1) for field in hash_part.split("&") if field)


def pressed(page, group):
    return page.locator(f'[aria-label="{group}"] [aria-pressed="true"]').get_attribute("data-value")


COLOURS_OF_CANVAS = """(canvas) => {
  // Read from a copy, because browsers move a canvas that is read often to the CPU.
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


def take(page, path, least_colours=6):
    """Takes a screenshot of the whole page, prepared for printing. No canvas may be blank."""
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    painted(page)
    for canvas in page.locator("canvas").all():
        if canvas.is_visible():
            assert canvas.evaluate(COLOURS_OF_CANVAS) >= least_colours, path.name
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 10_000


def test_table_matches_the_stacks(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)), state="v=table")
    own, total = sums(SIDE_A)
    whole = sum(SIDE_A.values())
    found = table(page)
    assert set(found) == set(total)
    for name, row in found.items():
        assert (row["Self"], row["Total"]) == (str(own[name]), str(total[name])), name
        assert (row["Self %"], row["Total %"]) == (percent(own[name] / whole), percent(total[name] / whole)), name


def test_column_headers_sort_the_function_table(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)), state="v=table")
    own, total = sums(SIDE_A)
    assert [own[name] for name in table(page)] == sorted(own[name] for name in total)[::-1]
    page.locator(".functions th button", has_text="Function").click()
    assert list(table(page)) == sorted(total)
    page.locator(".functions th button", has_text="Total").click()
    assert [total[name] for name in table(page)] == sorted(total.values(), reverse=True)
    assert state_of(page)["t"] == "-total0"


def test_hostile_names_are_inserted_as_text(open_page, view, tmp_path):
    file = view(speedscope(tmp_path / "hostile.json", WITH_HOSTILE, unit="none"))
    page = open_page(file, state="v=table")
    own, _ = sums(WITH_HOSTILE)
    found = table(page)
    long_row = next(name for name in found if name.startswith("LLL"))
    assert len(long_row) <= 300 and "…" in long_row and long_row.endswith("L!")
    assert found[long_row]["Self"] == str(own[LONG])
    for name in HOSTILE:
        if name != LONG:
            assert found[shown(name)]["Self"] == str(own[name])
    # Names appear in all views, in the tooltip and in the selected frame.
    for number, name in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        assert pressed(page, "view") == name
        painted(page)
        if name == "table":
            page.locator(".functions tbody td", has_text="img").first.click()
            assert MARKUP in page.locator(".selection .name").inner_text()
            continue
        box = page.locator('[data-panel="flame"] canvas').bounding_box()
        for x in range(20, 1200, 60):
            page.mouse.move(box["x"] + x, box["y"] + 30)
        page.mouse.move(0, 0)
    page.locator("input[type=search]").fill(MARKUP)
    assert page.locator(".result").first.inner_text().startswith("1 function:")
    assert page.locator("img, main b, iframe, object").count() == 0
    # Bidirectional controls would change the order of letters.
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.evaluate("document.body.innerText"))
    still = open_page(file, javascript=False)
    assert still.locator("img, main b, iframe").count() == 0
    assert MARKUP in still.locator("table.rows").last.inner_text()


@pytest.mark.parametrize("write", [folded, speedscope])
def test_differences_are_signed(open_page, view, tmp_path, write):
    files = [write(tmp_path / f"{name}.json", stacks) for name, stacks in (("a", SIDE_A), ("b", SIDE_B))]
    page = open_page(view(*files), state="v=table")
    found = table(page)
    (own_a, total_a), (own_b, total_b) = sums(SIDE_A), sums(SIDE_B)
    whole_a, whole_b = sum(SIDE_A.values()), sum(SIDE_B.values())
    assert set(found) == set(total_a) | set(total_b)

    def amount(a, b):
        """A, B and their difference as displayed: in milliseconds, or as shares of each side without time."""
        if write is speedscope:
            gap = f"{b - a:+d}" if b != a else "0"
            ms = [f"{n} ms" if n >= 100 else f"{n:.1f} ms" if n >= 10 else f"{n:.2f} ms" for n in (a, b, abs(b - a))]
            return ms[0] if a else "0 ns", ms[1] if b else "0 ns", gap[0] + ms[2] if b != a else "0 ns"
        gap = 100 * (b / whole_b - a / whole_a)
        return percent(a / whole_a), percent(b / whole_b), f"{gap:+.1f} %" if abs(gap) > 1e-9 else "0.0 %"

    for name, row in found.items():
        assert (row["Total A"], row["Total B"], row["Diff."]) == amount(total_a[name], total_b[name]), name
        assert (row["Self A"], row["Self B"], row["Self diff."]) == amount(own_a[name], own_b[name]), name
    # The difference of a parent is the difference of its totals.
    assert found["grow"]["Diff."].startswith("+") and found["work"]["Diff."].startswith("+")
    assert found["gone"]["B / A"] == "only in A" and found["fresh"]["B / A"] == "only in B"
    if write is speedscope:
        assert found["grow"]["Diff."] == "+40.0 ms" and found["work"]["Diff."] == "+40.0 ms"
    page.locator(".functions tbody td", has_text="fresh").click()
    assert "only in B" in page.locator(".selection .figures").inner_text()


def test_keyboard_shortcuts_and_url_hash(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)))
    for number, name in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        assert pressed(page, "view") == name
        assert state_of(page).get("v", "icicle") == name
    for key, name in [("t", "icicle"), ("i", "inverted"), ("i", "icicle"), ("t", "table"), ("1", "icicle")]:
        page.keyboard.press(key)
        assert pressed(page, "view") == name, key
    # A search reports the share of its matches: `grow` is in two stacks, once each.
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("grow")
    _, total = sums(SIDE_A)
    share = percent(total["grow"] / sum(SIDE_A.values()))
    assert page.locator(".result").inner_text() == f"1 function: {share} of total, each stack counted once"
    page.keyboard.press("Enter")
    assert "frame 1 of 2" in page.locator(".result").inner_text()
    assert page.locator(".selection .name").inner_text() == "grow"
    kept = state_of(page)
    assert kept["q"] == "grow" and "z" in kept
    page.keyboard.press("Escape")
    assert page.locator(".result").inner_text() == "" and "q" not in state_of(page)
    page.keyboard.press("0")
    assert "z" not in state_of(page) and page.locator(".selection .name").count() == 0
    page.keyboard.press("r")
    assert state_of(page)["r"] == "1"
    page.keyboard.press("?")
    assert page.locator("dialog.help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("dialog.help").is_visible()


def test_links_restore_the_view(open_page, view, tmp_path):
    file = view(folded(tmp_path / "a.folded", SIDE_A), folded(tmp_path / "b.folded", SIDE_B))
    page = open_page(file)
    page.keyboard.press("4")
    page.locator('[aria-label="side"] button', has_text="A | B | difference").click()
    page.locator('[aria-label="order"] button', has_text="by name").click()
    page.locator("input[type=search]").fill("wor")
    before = state_of(page)
    assert (before["v"], before["s"], before["o"], before["q"]) == ("sandwich", "abd", "name", "wor")
    seen = page.locator('[data-panel="flame"] canvas').evaluate("(canvas) => canvas.toDataURL()")
    page.reload()
    page.wait_for_selector('html[data-ready="1"]', state="attached")
    painted(page)
    assert state_of(page) == before
    assert [pressed(page, group) for group in ("view", "side", "order")] == ["sandwich", "abd", "name"]
    assert page.locator("input[type=search]").input_value() == "wor"
    page.mouse.move(0, 0)
    painted(page)
    assert page.locator('[data-panel="flame"] canvas').evaluate("(canvas) => canvas.toDataURL()") == seen
    # An invalid hash is ignored.
    nonsense = open_page(file, state="v=no&z=9999999_1_2&f=-7&t=%3Cb%3E&from=2_1&w=x&s=9")
    assert pressed(nonsense, "view") == "icicle" and nonsense.locator(".selection .name").count() == 0


def test_link_with_a_search_opens_the_match_in_the_sandwich_view(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)), state="v=sandwich&q=aga")
    assert page.locator(".pane-heads .whole").inner_text() == "callers above, callees below: again"
    page.locator("input[type=search]").fill("load")
    painted(page)
    assert page.locator(".pane-heads .whole").inner_text() == "callers above, callees below: load"
    # A selected function precedes the search.
    page.locator(".functions tbody td", has_text="load").click()
    page.locator("input[type=search]").fill("grow")
    painted(page)
    assert page.locator(".pane-heads .whole").inner_text() == "callers above, callees below: load"


def test_library_has_one_colour(open_page, view):
    page = open_page(view(RUNS / "matrix-product.lag"))
    chips = """(panel) => Object.fromEntries([...panel.querySelectorAll('.chip')].map((chip) =>
        [chip.textContent.replace(/ [<0-9.]+ %$/, ''), chip.querySelector('i').style.background]))"""
    flame, timeline = (page.locator(f'[data-panel="{name}"]').evaluate(chips) for name in ("flame", "timeline"))
    shared = flame.keys() & timeline.keys()
    assert len(shared) > 1
    assert {name: flame[name] for name in shared} == {name: timeline[name] for name in shared}


def test_click_zooms_and_double_click_shows_callers(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)))
    canvas = page.locator('[data-panel="flame"] canvas')
    painted(page)
    before = canvas.evaluate("(canvas) => canvas.toDataURL()")
    # The first row is the root, the second is `main`, and the third starts with its heaviest callee.
    canvas.click(position={"x": 40, "y": 2 * 19 + 9})
    painted(page)
    assert page.locator(".selection .name").inner_text() == "work"
    figures = page.locator(".selection .figures tbody tr").first.inner_text()
    assert figures.split("\t")[1:] == ["31", percent(31 / sum(SIDE_A.values()))]
    assert canvas.evaluate("(canvas) => canvas.toDataURL()") != before
    page.keyboard.press("Escape")
    painted(page)
    canvas.dblclick(position={"x": 40, "y": 2 * 19 + 9})
    assert pressed(page, "view") == "sandwich"
    assert page.locator(".pane-heads .whole").inner_text() == "callers above, callees below: work"


CONTRASTS = """() => {
  const light = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const worst = {};
  for (const element of document.querySelectorAll("body, body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
    if (!hasText || !element.checkVisibility() || element.matches("script, style, :disabled")) continue;
    const pair = [luminance(numbers(getComputedStyle(element).color)), luminance(ground(element))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    const name = element.tagName + "." + element.className;
    worst[name] = Math.min(worst[name] ?? Infinity, contrast);
  }
  return worst;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_in_both_themes(open_page, view, tmp_path, theme):
    pair = [folded(tmp_path / f"{name}.folded", stacks) for name, stacks in (("a", SIDE_A), ("b", SIDE_B))]
    others = [[FIXTURES / "culprits/scalar-loop.json"], [FIXTURES / "nvidia-native.json"], [RUNS / "matrix-product.lag"]]
    for files in [pair, *others]:
        page = open_page(view(*files), theme=theme, state="v=table")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        painted(page)
        worst = page.evaluate(CONTRASTS)
        assert len(worst) > 5
        assert {name: ratio for name, ratio in worst.items() if ratio < 4.5} == {}


def test_theme_is_toggled_and_stored(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)), theme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "light" and page.evaluate(ground) != dark
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_time_range_filters_the_flame_graph(open_page, view):
    page = open_page(view(RUNS / "matrix-product.lag"), state="v=table")
    samples = rows(parts(RUNS / "matrix-product.lag")[1], "samples")
    canvas = page.locator('[data-panel="timeline"] canvas')
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 60, steps=5)
    page.mouse.up()
    low, high = map(float, state_of(page)["from"].split("_"))
    assert 0 < low < high < max(sample["time_ns"] for sample in samples)
    within = sum(sample["weight"] for sample in samples if low <= sample["time_ns"] <= high)
    assert 0 < within < sum(sample["weight"] for sample in samples)
    notice = page.locator('[data-panel="flame"] .notice').inner_text()
    assert notice.startswith("Showing samples from") and f": {within / 1e6:.2f} ms." in notice
    found = table(page)
    assert found["main (app.py)"]["Total %"].endswith("%")
    own = sum(float(row["Self"].split()[0]) for row in found.values() if row["Self"].endswith("ms"))
    assert own == pytest.approx(within / 1e6)
    page.reload()
    page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert page.locator('[data-panel="flame"] .notice').inner_text() == notice
    page.locator('[data-panel="flame"] .notice button').click()
    assert not page.locator('[data-panel="flame"] .notice').is_visible() and "from" not in state_of(page)


def test_timeline_of_a_trace_zooms(open_page, view):
    page = open_page(view(FIXTURES / "nvidia-native.json"))
    box = page.locator('[data-panel="timeline"] canvas').bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 55)
    assert page.locator(".note").is_visible()
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 55, steps=5)
    page.mouse.up()
    low, high = map(float, state_of(page)["w"].split("_"))
    assert 0 < low < high
    page.locator('[aria-label="colour"] button', has_text="phase").click()
    assert state_of(page)["tc"] == "phase"
    page.keyboard.press("0")
    assert "w" not in state_of(page)


def test_timings_are_drawn_with_their_medians(open_page, view):
    page = open_page(view(FIXTURES / "bench/pyperf.json"))
    titles = page.locator(".case h3").all_inner_texts()
    assert titles == ["sum", "sorted"]
    cells = page.locator("table.rows").first.locator("tbody tr").all()
    for case, row in zip(page.locator(".case").all(), cells):
        assert case.locator("b").inner_text() == f"{row.locator('td').nth(2).inner_text()} ns"


def test_all_timings_are_drawn_before_printing(open_page, view):
    page = open_page(view(FIXTURES / "bench/pyperf.json"))
    page.set_viewport_size({"width": 1280, "height": 100})
    page.reload()
    page.wait_for_selector('html[data-ready="1"]', state="attached")
    painted(page)
    canvas = page.locator(".case canvas").last
    assert canvas.evaluate(COLOURS_OF_CANVAS) == 1, "a case far from the viewport was drawn early"
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert canvas.evaluate(COLOURS_OF_CANVAS) > 4


def test_report_tables_are_sortable(open_page, view, tmp_path):
    page = open_page(view(folded(tmp_path / "a.folded", SIDE_A)))
    rows_of = page.locator("#report table.rows").last

    def column(at):
        return [row.locator("td").nth(at).inner_text() for row in rows_of.locator("tbody tr").all()]

    heads = rows_of.locator("thead th")
    heads.nth(2).click()
    assert column(2) == sorted(column(2), key=int, reverse=True)
    heads.nth(2).click()
    assert column(2) == sorted(column(2), key=int)
    assert heads.nth(2).get_attribute("aria-sort") == "ascending"
    heads.nth(4).focus()
    page.keyboard.press("Enter")
    assert column(4) == sorted(column(4)) and set(column(4)) == set(sums(SIDE_A)[1])


def test_hostile_kernel_names_are_text_in_a_trace_comparison(open_page, view, tmp_path):
    # The kernels of B take twice as long, so that the comparison lists them.
    files = []
    for side, dur in (("a", 100), ("b", 200)):
        events = [
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": (dur + 50) * (8 * n + at), "dur": dur + n,
             "args": {"device": 0, "stream": 7, "correlation": 100 * n + at}}
            for n in range(8)
            for at, name in enumerate(HOSTILE)
        ]  # fmt: skip
        file = tmp_path / f"{side}.json"
        file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        files.append(file)
    page = open_page(view(*files))
    text = page.locator("#report").inner_text()
    assert "lags" in text.splitlines()[0]
    assert "<b>bold</b>" in text
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("main b").get_by_text("bold", exact=True).count() == 0
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.evaluate("document.body.innerText"))


PAGES = {
    "profile": ["runs/matrix-product.lag"],
    "trace": ["nvidia-native.json"],
    "trace-pair": ["decode.json", "nvidia-native.json"],
    "trace-same": ["decode.json", "decode.json"],
    "bench": ["bench/pyperf.json"],
    "bench-sides": ["bench/hyperfine.json"],
    "bench-pair": ["bench/pytest-benchmark.json", "bench/pytest-benchmark-again.json"],
    "verdict": ["culprits/scalar-loop.json"],
    "verdict-same": ["culprits/same-c.json"],
}


@pytest.mark.parametrize("name", PAGES)
def test_page_works_without_scripts(open_page, view, name):
    page = open_page(view(*(FIXTURES / file for file in PAGES[name])), javascript=False)
    assert page.locator("h1").inner_text() != ""
    assert page.locator("#report").inner_text().strip() != ""
    if name != "verdict-same":
        assert page.locator("table.rows tbody tr").count() > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_not_blank(open_page, view, shots, name, theme):
    page = open_page(view(*(FIXTURES / file for file in PAGES[name])), theme=theme)
    page.wait_for_timeout(200)
    take(page, shots / f"{name}-{theme}.png", least_colours=4)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sides", [1, 2])
def test_views_are_not_blank(open_page, view, shots, tmp_path, sides, theme):
    a = speedscope(tmp_path / "a.json", WITH_HOSTILE if sides == 1 else SIDE_A)
    b = speedscope(tmp_path / "b.json", SIDE_B)
    page = open_page(view(*[a, b][:sides]), theme=theme)
    for number, name in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        take(page, shots / f"{'pair' if sides == 2 else 'stacks'}-{name}-{theme}.png")
    if sides == 2:
        page.keyboard.press("1")
        page.locator('[aria-label="side"] button', has_text="A | B | difference").click()
        take(page, shots / f"pair-three-{theme}.png")


def test_narrow_windows_do_not_scroll_sideways(open_page, view, tmp_path):
    pair = [speedscope(tmp_path / f"{name}.json", stacks) for name, stacks in (("a", WITH_HOSTILE), ("b", SIDE_B))]
    for files in [pair, [FIXTURES / "nvidia-native.json"], [FIXTURES / "culprits/scalar-loop.json"]]:
        page = open_page(view(*files))
        for width in (390, 768):
            page.set_viewport_size({"width": width, "height": 800})
            painted(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_page_with_many_stacks_has_correct_totals(open_page, view, tmp_path):
    stacks = {("main", f"f{i % 700}", f"g{i % 9_001}", f"leaf{i}"): 1 + i % 5 for i in range(200_000)}
    page = open_page(view(folded(tmp_path / "many.folded", stacks)))
    whole = sum(stacks.values())
    assert f"{whole:,} samples" in page.locator(".minor").first.inner_text()
    page.keyboard.press("5")
    page.locator("input[type=search]").fill("/^main$/")
    assert table(page)["main"]["Total %"] == "100.0 %"
    page.keyboard.press("Escape")
    page.locator("input[type=search]").fill("/^f69/")
    share = percent(sum(n for stack, n in stacks.items() if stack[1].startswith("f69")) / whole)
    assert share in page.locator(".result").inner_text()
    print("ready after", page.evaluate("performance.getEntriesByName('laggard-ready')[0].startTime"), "ms")


def frames_of(page):
    """Visible frames of an SVG flame graph: title, label and width."""
    return page.evaluate(
        """() => [...document.querySelectorAll("g.frames > g")].filter((g) => g.style.display !== "none").map((g) => [
          g.querySelector("title").textContent, g.querySelector("text").textContent,
          Number(g.querySelector("rect").getAttribute("width"))])"""
    )


def test_svg_zooms_and_searches(open_page, laggard, tmp_path):
    graph = tmp_path / "a.svg"
    laggard("flame", folded(tmp_path / "a.folded", SIDE_A), "-o", graph)
    page = open_page(graph, answer="grow")
    _, total = sums(SIDE_A)
    whole = sum(SIDE_A.values())
    frames = frames_of(page)
    full = max(width for _, _, width in frames)
    work = next(frame for frame in frames if frame[0].startswith("work "))
    assert work[2] == pytest.approx(full * total["work"] / whole, abs=0.02)
    assert f"{percent(total['work'] / whole)}, {total['work']} samples" in work[0]
    page.locator("g.frames > g", has=page.locator("title", has_text="work")).first.click()
    zoomed = frames_of(page)
    assert next(frame for frame in zoomed if frame[0].startswith("work "))[2] == pytest.approx(full)
    assert not any(frame[0].startswith("load ") for frame in zoomed)
    page.keyboard.press("Escape")
    assert len(frames_of(page)) == len(frames)
    page.keyboard.press("/")
    result = page.locator("[data-out=found]").text_content()
    assert result == f"2 frames, {percent(total['grow'] / whole)} of total"
    assert page.locator("g.hit").count() == 2


def test_svg_of_two_sides_shows_differences(open_page, laggard, shots, tmp_path):
    graph = tmp_path / "pair.svg"
    a, b = (speedscope(tmp_path / f"{name}.json", stacks) for name, stacks in (("a", SIDE_A), ("b", SIDE_B)))
    laggard("flame", a, b, "-o", graph)
    page = open_page(graph)
    titles = {title.split()[0]: title for title, _, _ in frames_of(page)}
    assert "+40.0 ms" in titles["work"] and "A 31.0 ms" in titles["work"] and "B 71.0 ms" in titles["work"]
    assert titles["gone"].count("only in A") == 1 and titles["fresh"].count("only in B") == 1
    page.screenshot(path=shots / "pair-svg.png")
    # Without time, shares are compared and shown in percent.
    a, b = (folded(tmp_path / f"{name}.folded", stacks) for name, stacks in (("a", SIDE_A), ("b", SIDE_B)))
    laggard("flame", a, b, "-o", graph, "--force")
    page.reload()
    titles = {title.split()[0]: title for title, _, _ in frames_of(page)}
    share = 100 * (sums(SIDE_B)[1]["work"] / sum(SIDE_B.values()) - sums(SIDE_A)[1]["work"] / sum(SIDE_A.values()))
    assert f"{share:+.1f} %" in titles["work"]


def test_hostile_names_are_text_in_svg(open_page, laggard, tmp_path):
    graph = tmp_path / "hostile.svg"
    laggard("flame", speedscope(tmp_path / "hostile.json", WITH_HOSTILE), "-o", graph)
    page = open_page(graph)
    assert any(MARKUP in title for title, _, _ in frames_of(page))
    assert page.locator("img").count() == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 1
