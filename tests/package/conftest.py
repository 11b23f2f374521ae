"""Fixtures for the tests of the installed package."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
REAL_TRACES = ROOT.parent / "shared" / "traces"


def pytest_configure(config):
    config.addinivalue_line("markers", "spark: starts a Spark cluster; run by `cargo xtask test --all`")


def traces():
    """Small traces with known content, in every layout and compression."""
    return [FIXTURES / name for name in json.loads((FIXTURES / "expected.json").read_text())]


def events(path):
    """The events of a trace, read with the json module."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    file = json.loads(text)
    return file if isinstance(file, list) else file["traceEvents"]


@pytest.fixture
def command():
    """Runs the command line of the package: `command("report", path).stdout`; `code=None` accepts any exit status."""

    def run(*words, code=0, **options):
        line = [sys.executable, "-m", "laggard", *map(str, words)]
        options = {"stdin": subprocess.DEVNULL, "timeout": 300, **options}
        done = subprocess.run(line, capture_output=True, text=True, encoding="utf-8", **options)
        assert code is None or done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
