"""Medians and ratios of benchmark files match those computed in Python from the same files."""

import csv
import io
import json
from statistics import median

import pytest
from conftest import FIXTURES

BENCH = FIXTURES / "bench"


def hyperfine(file):
    """Seconds of every run, by parameters and command."""
    cases = {}
    for row in file["results"]:
        parameters = " ".join(f"{name}={value}" for name, value in sorted(row.get("parameters", {}).items()))
        cases.setdefault(("", parameters), []).append(row["times"])
    return cases


def pyperf(file):
    """Seconds of every value, by benchmark."""
    return {
        (benchmark["metadata"]["name"], ""): [[value for run in benchmark["runs"] for value in run["values"]]]
        for benchmark in file["benchmarks"]
    }


def pytest_benchmark(file):
    """Seconds of every round, by test and parameters; only the median if the file has no rounds."""
    cases = {}
    for row in file["benchmarks"]:
        name = row["fullname"].removesuffix(f"[{row['param']}]")
        parameters = " ".join(f"{name}={value}" for name, value in (row["params"] or {}).items())
        cases[name, parameters] = [row["stats"].get("data", [row["stats"]["median"]])]
    return cases


FILES = [
    ("hyperfine.json", hyperfine),
    ("hyperfine-1.15.json", hyperfine),
    ("hyperfine-parameters.json", hyperfine),
    ("pyperf.json", pyperf),
    ("pytest-benchmark.json", pytest_benchmark),
    ("pytest-benchmark-again.json", pytest_benchmark),
    ("pytest-benchmark-stats.json", pytest_benchmark),
]


@pytest.fixture(params=FILES, ids=[name for name, _ in FILES])
def results(request):
    """A file, and its times in seconds by case and side."""
    name, read = request.param
    return BENCH / name, read(json.loads((BENCH / name).read_text()))


def test_medians_and_ratios_match_the_file(laggard, results):
    path, cases = results
    rows = list(csv.DictReader(io.StringIO(laggard("report", path, "--format", "csv").stdout)))
    assert len(rows) == sum(map(len, cases.values()))
    for row in rows:
        sides = cases[row["case"], row["parameters"]]
        times = sides["ABC".index(row["side"])]
        assert int(row["rounds"]) == len(times)
        # Batch times are stored in whole nanoseconds.
        assert float(row["median_ns"]) == pytest.approx(median(times) * 1e9, abs=1)
        assert float(row["max_ns"]) == pytest.approx(max(times) * 1e9, abs=1)
        if row["ratio"]:
            # With very few rounds, the confidence interval is unbounded.
            low, high = (float(row[end] or limit) for end, limit in (("ratio_low", 0), ("ratio_high", "inf")))
            assert low <= float(row["ratio"]) <= high
            of_rounds = median(b / a for a, b in zip(*sides))
            of_medians = median(sides[1]) / median(sides[0])
            assert any(float(row["ratio"]) == pytest.approx(one, rel=1e-5) for one in (of_rounds, of_medians))


def test_json_keeps_all_samples_and_can_be_read_back(laggard, results, tmp_path):
    path, cases = results
    ours = tmp_path / "bench.json"
    laggard("report", path, "-o", ours)
    file = json.loads(ours.read_text())
    assert file["schema"] == "laggard.bench/1"
    for case in file["cases"]:
        parameters = " ".join(f"{pair['name']}={pair['value']}" for pair in case["parameters"])
        for times, series in zip(cases[case["name"], parameters], case["series"], strict=True):
            batches = series["batches"]
            calls = [wall / calls for wall, calls in zip(batches["wall_ns"], batches["calls"], strict=True)]
            assert calls == pytest.approx([time * 1e9 for time in times], abs=1)
            assert series["wall_ns"]["median"] == pytest.approx(median(calls))
            assert series["wall_ns"]["n"] == len(calls)
    for format in ("text", "json", "csv", "md"):
        again, first = (laggard("report", file, "--format", format).stdout for file in (ours, path))
        assert again == first


def test_fail_above_only_fails_if_b_is_slower_than_the_limit(laggard, tmp_path):
    file = json.loads(laggard("report", BENCH / "pytest-benchmark.json", "--json").stdout)

    def slower(by):
        for case in file["cases"]:
            batches = case["series"][0]["batches"]
            batches["wall_ns"] = [round(wall * by) for wall in batches["wall_ns"]]
        path = tmp_path / f"{by}.json"
        path.write_text(json.dumps(file))
        return path

    baseline, much_slower = slower(1), slower(3)
    assert laggard("compare", "--fail-above", "5%", baseline, baseline).code == 0
    assert laggard("compare", "--fail-above", "5%", much_slower, baseline).code == 0
    tripped = laggard("compare", "--fail-above", "50%", baseline, much_slower, "--json", code=1)
    found = json.loads(tripped.stdout)
    assert found["tripped"] and all(change["too_slow"] for change in found["changes"])
    assert [change["change"]["middle"] for change in found["changes"]] == pytest.approx([3, 3, 3], rel=0.01)
    assert laggard("compare", "--fail-above", "250%", baseline, much_slower).code == 0
