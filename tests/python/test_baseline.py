"""The totals of `laggard report` match those computed in Python exactly."""

import json
import subprocess
import sys
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from conftest import FIXTURES, ROOT, fixtures, name_of, real_traces, text_of

BASELINE = ROOT / "crates" / "xtask" / "src" / "bench" / "baseline.py"


def totals(laggard, path):
    report = json.loads(laggard("report", "--json", "--no-index", path).stdout)["totals"]
    kernels = report["kernels"]
    return {"events": report["events"]["count"], "kernels": kernels["count"], "kernel_ns": kernels["time_ns"]}


def exact_totals(text):
    """Totals computed with the json module and exact arithmetic."""
    trace = json.loads(text, parse_float=Decimal)
    events = [event for event in (trace if isinstance(trace, list) else trace["traceEvents"]) if isinstance(event, dict)]
    kernels = [event for event in events if is_kernel(event)]
    return {"events": len(events), "kernels": len(kernels), "kernel_ns": sum(map(nanos, kernels))}


def is_kernel(event):
    return event.get("ph") == "X" and event.get("cat") in ("kernel", "Kernel") and is_number(event.get("ts"))


def is_number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def nanos(event):
    duration = event.get("dur", 0)
    if not is_number(duration) or duration < 0:
        return 0
    return int((Decimal(duration) * 1000).to_integral_value(ROUND_HALF_EVEN))


@pytest.mark.parametrize(("path", "expected"), [pytest.param(*row, id=name_of(row[0])) for row in fixtures()])
def test_fixture_has_the_expected_totals(laggard, path, expected):
    assert totals(laggard, path) == expected


def parsable_fixtures():
    """Fixtures that the json module can parse, including most malformed files."""
    for path, expected in fixtures():
        try:
            yield pytest.param(exact_totals(text_of(path)), expected, id=name_of(path))
        except (ValueError, RecursionError):
            continue


@pytest.mark.parametrize(("found", "expected"), list(parsable_fixtures()))
def test_expected_totals_match_the_json_module(found, expected):
    assert found == expected


def baseline_traces():
    fixtures = [path for path in sorted(FIXTURES.glob("*.json*")) if path.name not in ("expected.json", "bare-array.json")]
    for path in fixtures:
        if path.suffix != ".zst":
            yield pytest.param(path, id=name_of(path))
    for path in real_traces():
        yield pytest.param(path, id=name_of(path), marks=pytest.mark.slow)


@pytest.mark.parametrize("path", list(baseline_traces()))
def test_report_agrees_with_the_python_baseline(laggard, path):
    done = subprocess.run([sys.executable, BASELINE, path, "--gc-off"], capture_output=True, text=True, check=True)
    baseline = json.loads(done.stdout)
    ours = totals(laggard, path)
    assert ours == exact_totals(text_of(path))
    assert (ours["events"], ours["kernels"]) == (baseline["events"], baseline["kernels"])
    # The baseline sums in floating point and prints three decimals.
    assert ours["kernel_ns"] == pytest.approx(baseline["kernel_us"] * 1000, rel=1e-9, abs=1)


# Not a trace, but a profile that the report verb accepts.
PROFILE = "speedscope.json"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.name) for path in sorted((FIXTURES / "not-traces").iterdir()) if path.name != PROFILE],
)
def test_files_of_other_kinds_are_rejected(laggard, path):
    result = laggard("report", "--no-index", path, code=2)
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""


def test_speedscope_profile_is_not_read_as_a_trace(laggard):
    report = json.loads(laggard("report", "--json", FIXTURES / "not-traces" / PROFILE).stdout)
    assert report["schema"] == "laggard.profile/1"
    assert report["whole"] == {"samples": 2, "weight": 20_000_000}
