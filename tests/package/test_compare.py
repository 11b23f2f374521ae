"""Comparisons of two files, and their culprits."""

import json

import laggard
import pytest
from conftest import FIXTURES


def test_comparison_matches_the_command_line(command):
    paths = [FIXTURES / "bench" / name for name in ("pytest-benchmark.json", "pytest-benchmark-again.json")]
    comparison = laggard.load(paths[0]).compare(paths[1])
    assert comparison.report() == str(comparison) == command("compare", *paths).stdout
    assert comparison.to_dict() == json.loads(command("compare", "--json", *paths).stdout)
    assert comparison.page().startswith("<!doctype html>")
    assert "pytest-benchmark-again.json" in repr(comparison)
    assert isinstance(comparison.trips("5000%"), bool)


def steps(kernel_us, count=12):
    """A trace of steps with two kernels each; the first takes `kernel_us`."""
    events, correlation = [], 0
    for number in range(count):
        start = (kernel_us + 1_000) * number
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": start,
                       "dur": kernel_us + 900, "pid": 1, "tid": 1, "args": {}})  # fmt: skip
        for name, duration in (("ampere_sgemm_128x64", kernel_us), ("vectorized_elementwise_kernel", 500)):
            correlation += 1
            args = {"correlation": correlation, "stream": 7, "device": 0}
            launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 10 + correlation % 2,
                      "dur": 1, "pid": 1, "tid": 1, "args": args}  # fmt: skip
            at = start + 100 + (0 if "gemm" in name else kernel_us + number % 3)
            kernel = {"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": duration + number % 3,
                      "pid": 0, "tid": 7, "args": args}  # fmt: skip
            events += [launch, kernel]
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}]}


def test_slower_kernel_is_the_culprit(tmp_path):
    for name, kernel_us in (("a", 2_000), ("b", 4_000)):
        (tmp_path / f"{name}.json").write_text(json.dumps(steps(kernel_us)))
    a, b = (laggard.load(tmp_path / f"{name}.json") for name in "ab")
    comparison = a.compare(b)
    first = comparison.culprits[0]
    assert first.kind == "same-kernel-slower"
    assert first.explains > 0.8 and first.gap_ns == pytest.approx(2_000_000, rel=0.05)
    assert first.facts and all(fact.unit for fact in first.facts)
    assert comparison.trips(0.05) and not a.compare(a).trips("5%")
    assert a.compare(a).culprits == []


def test_profile_comparison_lists_functions():
    profiles = sorted((FIXTURES / "profiles").glob("*.folded"))
    if not profiles:
        pytest.skip("no fixture has collapsed stacks")
    a = laggard.load(profiles[0])
    assert "by function" in a.compare(a).report()


def test_files_of_different_kinds_cannot_be_compared():
    trace = laggard.load(FIXTURES / "amd-native.json", index=False)
    bench = laggard.load(FIXTURES / "bench" / "pyperf.json")
    with pytest.raises(laggard.Error, match="different kinds") as raised:
        trace.compare(bench)
    assert "one kind" in raised.value.hint


def test_saved_verdict_has_culprits():
    verdict = laggard.load(FIXTURES / "culprits" / "scalar-loop.json")
    assert verdict.lags and verdict.ratio > 1
    assert verdict.culprits[0].kind == "scalar-loop"
    assert sum(found.explains for found in verdict.culprits) + verdict.not_explained == pytest.approx(1, abs=0.02)
    innocent = laggard.load(FIXTURES / "culprits" / "same-c.json")
    assert innocent.culprits == []
