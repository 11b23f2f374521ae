"""`laggard.bench` and `laggard.why`, with statements in separate processes and callables in this process."""

import gc
import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import laggard
import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="sampling requires Linux")


def count():
    total = 0
    for _ in range(3000):
        total += 1
    return total


def test_callables_run_in_this_process():
    calls = []

    def note():
        calls.append(1)
        return count()

    bench = laggard.bench(note, count, rounds=20)
    assert calls
    (found,) = bench.comparisons
    assert found["ratio"]["low"] <= found["ratio"]["middle"] <= found["ratio"]["high"]
    assert found["n"] >= 2
    rows = bench.batches.head(10**6)
    assert {row["side"] for row in rows} == {"A", "B"}
    assert [row["runs"] for row in bench.series.head(2)] == [
        "test_callables_run_in_this_process.<locals>.note()",
        "count()",
    ]
    assert gc.isenabled()


def test_times_are_seconds_or_text():
    for time_ in (0.1, "0.1", "100ms"):
        assert laggard.bench(count, time=time_).batches.head(1)
    assert laggard.bench("sum(range(10))", time="300ms", precision="5%").batches.head(1)
    for wrong in ("6 parsecs", "", -1, float("nan")):
        for sides in ((count, count), ("1", "1")):
            with pytest.raises(laggard.UsageError, match="invalid time"):
                laggard.bench(*sides, time=wrong)
            with pytest.raises(laggard.UsageError, match="invalid time"):
                laggard.why(*sides, time=wrong)
    with pytest.raises(laggard.UsageError, match="invalid precision 'exact'"):
        laggard.bench(count, precision="exact")


def test_callables_that_need_arguments_are_rejected():
    for call in (laggard.bench, laggard.why):
        with pytest.raises(laggard.UsageError, match=r"side B, pow_of, needs arguments \(base, power\)") as raised:
            call(count, pow_of)
        assert "lambda: pow_of(...)" in raised.value.hint
    # Defaults and variadic parameters need no arguments, and built-in functions may have no signature.
    laggard.bench(lambda *args, n=3, **flags: n, dict, time=0.05, check=False)


def pow_of(base, power):
    return base**power


def test_defaults_equal_those_of_the_command_line():
    for verb in ("bench", "why"):
        text = subprocess.run(
            [sys.executable, "-m", "laggard", verb, "--help"], capture_output=True, text=True, check=True
        ).stdout
        default = re.search(r"--time <TIME>[^\[]*\[default: (\d+)s\]", text)
        assert float(default[1]) == inspect.signature(getattr(laggard, verb)).parameters["time"].default


def test_results_print_what_they_are():
    bench = laggard.bench(count, count, rounds=5)
    assert re.fullmatch(r"<laggard.Bench '.*': 2 series, \d+ batches>", repr(bench))
    assert re.fullmatch(r"<laggard.Comparison of bench '.*' with '.*'>", repr(bench.compare(bench)))
    assert repr(laggard.record("run.lag")) == "<laggard.record 'run.lag': 0 samples>"


def test_single_side_is_timed():
    bench = laggard.bench(count, time=0.1)
    assert bench.comparisons == []
    assert all(row["call_ns"] > 0 for row in bench.batches.head(100))


def test_statements_run_in_this_interpreter_by_default():
    bench = laggard.bench("sum(x)", "max(x)", setup="x = list(range(100))", time=0.3, check=False)
    assert sys.version.split()[0] in bench.report("json")
    scanned = laggard.bench("sum(range(n))", time=0.3, param="n=10,100")
    assert {row["case"] for row in scanned.series.head(10)} == {"n=10", "n=100"}


def test_saved_benchmark_can_be_loaded(tmp_path):
    bench = laggard.bench(count, count, time=0.2)
    bench.save(tmp_path / "bench.json")
    again = laggard.load(tmp_path / "bench.json")
    assert again.comparisons == bench.comparisons
    assert again.batches.head(10**6) == bench.batches.head(10**6)
    assert bench.compare(again).report()


def test_different_results_raise():
    with pytest.raises(laggard.ResultsDiffer, match="A and B give different results: 1 and 2") as raised:
        laggard.bench(lambda: 1, lambda: 2)
    assert "check=False" in raised.value.hint
    with pytest.raises(laggard.ResultsDiffer):
        laggard.bench("[1]", "[1, 2]", time=0.2)
    laggard.bench(lambda: 1, lambda: 2, check=False, time=0.05)
    laggard.bench(lambda: 1.0, lambda: 1.0 + 1e-9, time=0.05)
    with pytest.raises(laggard.ResultsDiffer):
        laggard.bench(lambda: [1.0, {"a": 2.0}], lambda: [1.0, {"a": 2.1}], time=0.05)
    laggard.bench(lambda: float("nan"), lambda: float("nan"), time=0.05)


def test_tolerance_of_arrays_depends_on_their_precision():
    numpy = pytest.importorskip("numpy")
    single = numpy.ones(10, numpy.float32)
    laggard.bench(lambda: single, lambda: single + numpy.float32(1e-5), time=0.05)
    with pytest.raises(laggard.ResultsDiffer):
        laggard.bench(lambda: single, lambda: single[:5], time=0.05)


class SideError(Exception):
    pass


def test_exceptions_of_a_side_are_propagated():
    calls = []

    def later():
        calls.append(1)
        if len(calls) > 5:
            raise SideError("no more")

    with pytest.raises(SideError, match="no more"):
        laggard.bench(later, later, time=0.2)
    assert gc.isenabled()
    with pytest.raises(laggard.MeasureError, match="ZeroDivisionError"):
        laggard.bench("1 / 0", time=0.2)


def test_invalid_arguments_raise_usage_errors():
    with pytest.raises(laggard.UsageError, match="at least one side"):
        laggard.bench()
    with pytest.raises(laggard.UsageError, match="all statements or all callables"):
        laggard.bench("1", lambda: 1)
    with pytest.raises(laggard.UsageError, match="setup applies to statements"):
        laggard.bench(count, count, setup="x = 1")
    with pytest.raises(laggard.UsageError, match="no-such"):
        laggard.bench("1", "1", no_such=True)


@linux
def test_why_with_statements_reports_the_interpreter():
    verdict = laggard.why("sum(x)", "total = 0\nfor i in x: total += i", setup="x = list(range(20000))", time=5, check=False)
    assert verdict.lags
    assert verdict.culprits[0].kind == "interpreter"
    assert verdict.report("markdown") and verdict.page().startswith("<!doctype html>")


def children(parent):
    """Ids of the running child processes of `parent`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, ppid = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[:2]
        except OSError:
            continue
        if int(ppid) == parent and state != "Z":
            found.append(int(pid))
    return found


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


BENCH = "laggard.bench('sum(range(1000))', 'sum(range(1001))', time=100, precision=1e-9, check=False)"


@linux
def test_ctrl_c_raises_and_stops_the_workers():
    code = f"""
        import laggard, time
        try:
            {BENCH}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        time.sleep(100)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    try:
        assert wait_until(lambda: len(children(process.pid)) == 2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert wait_until(lambda: not children(process.pid)), children(process.pid)
    finally:
        process.kill()
        process.wait()


@linux
def test_terminated_benchmark_stops_its_workers():
    process = subprocess.Popen([sys.executable, "-c", f"import laggard; {BENCH}"])
    assert wait_until(lambda: len(children(process.pid)) == 2)
    workers = children(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) != 0
    assert wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
