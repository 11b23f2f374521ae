"""What the Python tests share: the program under test, and the traces to run it on."""

import gzip
import json
import os
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


def fixtures():
    """Path and expected counts of every fixture whose content is beyond doubt."""
    expected = json.loads((FIXTURES / "expected.json").read_text())
    return [(FIXTURES / name, counts) for name, counts in expected.items()]


def real_traces():
    """Traces of real machines, where they lie beside the project."""
    found = [path for path in REAL_TRACES.rglob("*.json*") if "not_traces" not in path.parts]
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
