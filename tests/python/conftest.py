"""Fixtures of the Python tests: the program under test, a browser, and traces."""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pyarrow
import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
REAL_TRACES = ROOT.parent / "shared" / "traces"


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: skipped by `cargo xtask test --quick`")


@pytest.fixture
def laggard():
    """Runs the program: `laggard("report", path).stdout`; `code=None` accepts any exit status."""
    program = os.environ.get("LAGGARD_BIN")
    if not program:
        pytest.exit("LAGGARD_BIN is not set; run `cargo xtask test`", returncode=2)

    def run(*args, code=0):
        words = [program, *map(str, args)]
        # An index after each load, because the fixtures load fast.
        env = {**os.environ, "LAGGARD_INDEX_AFTER": "0"}
        done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL, env=env)
        result = SimpleNamespace(stdout=done.stdout, stderr=done.stderr, code=done.returncode)
        assert code is None or result.code == code, f"{' '.join(words)}: exit status {result.code}\n{result.stderr}"
        return result

    return run


# Disable the browser's own network requests, so that all requests come from the page.
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def chromium():
    """A real browser. Tests that need it are skipped if it is not installed."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright; `cargo xtask test` installs it")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        pytest.skip("chromium not found in PATH; `cargo xtask test` installs it")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens a file: `open_page(path, theme="dark", state="v=table")`. The test fails if the page requested any other
    file, if a script failed, or if an unexpected dialog opened."""
    contexts, problems, allowed = [], [], set()

    def open_file(path, theme="light", state="", javascript=True, answer=None):
        context = chromium.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme=theme, java_script_enabled=javascript
        )
        contexts.append(context)
        page = context.new_page()
        url = Path(path).resolve().as_uri()
        allowed.add(url)

        def on_request(request):
            if request.url.split("#")[0] not in allowed:
                problems.append(f"request: {request.url[:200]}")

        def on_dialog(dialog):
            if answer is None:
                problems.append(f"dialog: {dialog.message}")
                dialog.dismiss()
            else:
                dialog.accept(answer)

        def on_console(message):
            if message.type in ("error", "warning"):
                problems.append(f"console: {message.text}")

        context.on("request", on_request)
        page.on("dialog", on_dialog)
        page.on("console", on_console)
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.goto(url + (f"#{state}" if state else ""))
        if javascript and url.endswith(".html"):
            page.wait_for_selector('html[data-ready="1"]', state="attached")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert problems == []


def fixtures():
    """Path and expected counts of every fixture in expected.json."""
    expected = json.loads((FIXTURES / "expected.json").read_text())
    return [(FIXTURES / name, counts) for name, counts in expected.items()]


# Directories with files of other profilers, and a list of graph batches that is not a trace.
OTHER_KINDS = {"not_traces", "nsys", "rocprofv3", "xplane", "execution_details.json"}


def real_traces():
    """Traces from real machines, if the directory exists next to the project."""
    found = [path for path in REAL_TRACES.rglob("*.json*") if OTHER_KINDS.isdisjoint(path.parts)]
    return sorted(path for path in found if path.suffix in (".json", ".gz", ".zst"))


def name_of(path):
    """A short name of the path, for test ids."""
    for base in (FIXTURES, REAL_TRACES):
        if base in path.parents:
            return str(path.relative_to(base))
    return path.name


def text_of(path):
    """The decompressed text of a trace."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    if path.suffix == ".zst":
        return pyarrow.input_stream(str(path), compression="zstd").read().decode()
    return path.read_bytes().decode()
