"""What the Python tests share: the program under test, and the traces to run it on."""

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
    config.addinivalue_line("markers", "slow: takes long; left out by `cargo xtask test --quick`")


@pytest.fixture
def laggard():
    """Runs the program: `laggard("report", path).stdout`; `code=None` accepts any exit code."""
    program = os.environ.get("LAGGARD_BIN")
    if not program:
        pytest.exit("LAGGARD_BIN is not set; run `cargo xtask test`", returncode=2)

    def run(*args, code=0):
        words = [program, *map(str, args)]
        done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL)
        result = SimpleNamespace(stdout=done.stdout, stderr=done.stderr, code=done.returncode)
        assert code is None or result.code == code, f"{' '.join(words)}: exit code {result.code}\n{result.stderr}"
        return result

    return run


# Nothing that a browser does by itself may look like the page doing it.
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
    """A real browser. Tests that need it are skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; `cargo xtask test` does it")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        pytest.skip("there is no chromium in PATH; `cargo xtask test` installs Debian's")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens a file: `open_page(path, theme="dark", state="v=table")`. At the end of the test nothing but these files
    may have been asked for, no script may have failed, and nothing may have popped up that the test did not expect."""
    contexts, wrong, allowed = [], [], set()

    def open_it(path, theme="light", state="", javascript=True, answer=None):
        context = chromium.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme=theme, java_script_enabled=javascript
        )
        contexts.append(context)
        page = context.new_page()
        url = Path(path).resolve().as_uri()
        allowed.add(url)

        def asked(request):
            if request.url.split("#")[0] not in allowed:
                wrong.append(f"request: {request.url[:200]}")

        def popped_up(dialog):
            if answer is None:
                wrong.append(f"dialog: {dialog.message}")
                dialog.dismiss()
            else:
                dialog.accept(answer)

        def said(message):
            if message.type in ("error", "warning"):
                wrong.append(f"console: {message.text}")

        context.on("request", asked)
        page.on("dialog", popped_up)
        page.on("console", said)
        page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
        page.goto(url + (f"#{state}" if state else ""))
        if javascript and url.endswith(".html"):
            page.wait_for_selector('html[data-ready="1"]', state="attached")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert wrong == []


def fixtures():
    """Path and expected counts of every fixture whose content is beyond doubt."""
    expected = json.loads((FIXTURES / "expected.json").read_text())
    return [(FIXTURES / name, counts) for name, counts in expected.items()]


# Directories of files that are not PyTorch traces, and the file that lists the batches of a captured graph.
OTHER_KINDS = {"not_traces", "nsys", "rocprofv3", "xplane", "execution_details.json"}


def real_traces():
    """Traces of real machines, if they lie beside the project."""
    found = [path for path in REAL_TRACES.rglob("*.json*") if OTHER_KINDS.isdisjoint(path.parts)]
    return sorted(path for path in found if path.suffix in (".json", ".gz", ".zst"))


def name_of(path):
    """A path as a test's name."""
    for base in (FIXTURES, REAL_TRACES):
        if base in path.parents:
            return str(path.relative_to(base))
    return path.name


def text_of(path):
    """The text of a trace, expanded."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    if path.suffix == ".zst":
        return pyarrow.input_stream(str(path), compression="zstd").read().decode()
    return path.read_bytes().decode()
