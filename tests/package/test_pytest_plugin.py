"""The pytest plugin: `versus` compares two sides in a test."""

import json
import subprocess
import sys

import pytest

# The sides differ by orders of magnitude, so that the result does not depend on the load of the machine.
TESTS = """
numbers = list(range(2000))

def native():
    return len(numbers)

def loop():
    total = 0
    for _ in numbers:
        total += 1
    return total

def test_not_slower_than_itself(versus):
    versus(native, native).assert_not_slower(by=0.5)

def test_native_is_faster(versus):
    versus(loop, native).assert_faster(by=0.1)

def test_loop_is_slower(versus):
    versus(native, loop).assert_not_slower(by=0.05)

def test_statements(versus):
    outcome = versus("sum(x)", "sum(sorted(x))", setup="x = list(range(999, 0, -1))")
    assert outcome.ratio > 1 and outcome.interval[0] <= outcome.ratio <= outcome.interval[1]
"""


@pytest.fixture
def outcome(tmp_path):
    """Runs pytest on a test file that uses the plugin."""
    (tmp_path / "test_speed.py").write_text(TESTS)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--versus-time", "0.5", "--versus-save", "kept"]
    return subprocess.run(
        [sys.executable, *words, "test_speed.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )


def test_only_the_slower_side_fails_with_a_report(outcome, tmp_path):
    stdout = outcome.stdout
    assert "3 passed" in stdout and "1 failed" in stdout, stdout + outcome.stderr
    assert "FAILED test_speed.py::test_loop_is_slower" in stdout
    assert "B takes" in stdout and "limit: slower by at most 5.0%" in stdout
    kept = sorted((tmp_path / "kept").glob("*.json"))
    assert len(kept) == 4
    assert json.loads(kept[0].read_text())["schema"].startswith("laggard.bench/")
