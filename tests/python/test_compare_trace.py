"""`laggard compare` of two traces: totals match those computed in Python, differences add up, and the JSON matches its
schema. Tests run on generated pairs of traces, and on real pairs if available."""

import json
from collections import defaultdict
from decimal import Decimal

import jsonschema
import pytest
from conftest import FIXTURES, REAL_TRACES, ROOT, text_of

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
PAIRS = [
    ("h100_qwen1.5", "mi300_qwen1.5"),
    ("h100_nsfw", "mi300_nsfw"),
    ("a100_control", "v100_test"),
    ("tiny_base", "tiny_test"),
]
REAL = [
    pytest.param(REAL_TRACES / f"{a}.json.gz", REAL_TRACES / f"{b}.json.gz", id=a)
    for a, b in PAIRS
    if (REAL_TRACES / f"{a}.json.gz").exists()
]
GENERATED = [
    pytest.param(FIXTURES / "nvidia-native.json", FIXTURES / "amd-native.json", id="generated"),
    pytest.param(FIXTURES / "decode.json", FIXTURES / "decode.json", id="same-trace-twice"),
]
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "compare-trace-1.json").read_text())


def kernels(path):
    """Count and nanoseconds of device operations by name."""
    sums = defaultdict(lambda: [0, 0])
    for event in json.loads(text_of(path), parse_float=Decimal)["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in DEVICE:
            name = event["name"]
            sums[name][0] += 1
            sums[name][1] += max(0, int(Decimal(event.get("dur", 0)) * 1000))
    return {name: tuple(sum) for name, sum in sums.items()}


@pytest.mark.parametrize("a, b", REAL + GENERATED)
def test_totals_match_python_and_differences_add_up(laggard, a, b):
    found = json.loads(laggard("compare", "--json", "--no-index", a, b).stdout)
    rows = [row for row in found["findings"] if row["by"] == "kernel"]
    for side, path in (("a", a), ("b", b)):
        expected = kernels(path)
        ours = {row["name"]: (row[side]["count"], row[side]["total_ns"]) for row in rows if row[side]["count"]}
        assert ours == expected
        report = json.loads(laggard("report", "--json", "--no-index", path).stdout)
        device_ns = sum(report["totals"][what]["time_ns"] for what in ("kernels", "copies", "fills", "device"))
        for by in {row["by"] for row in found["findings"]}:
            assert sum(row[side]["total_ns"] for row in found["findings"] if row["by"] == by) == device_ns
    whole = sum(total for _, total in kernels(b).values()) - sum(total for _, total in kernels(a).values())
    for by in {row["by"] for row in found["findings"]}:
        assert sum(row["total_gap_ns"] for row in found["findings"] if row["by"] == by) == whole


@pytest.mark.parametrize("a, b", REAL + GENERATED)
def test_time_components_add_up_to_the_total_difference(laggard, a, b):
    found = json.loads(laggard("compare", "--json", "--no-index", a, b).stdout)
    whole = found["whole"]
    parts = sum(row["gap_ns"] for row in found["time"])
    laps = min(found["a"]["laps"], found["b"]["laps"])
    # With one step the parts are exact. Medians over several steps add up only approximately.
    allowed = 1 if laps == 1 else 0.05 * whole["a"]["lap_ns"]
    assert abs(parts - whole["gap_ns"]) <= allowed
    if found["culprits"]:
        explained = sum(culprit["explains"] for culprit in found["culprits"])
        assert explained + found["not_explained"] == pytest.approx(1)


@pytest.mark.parametrize("a, b", REAL + GENERATED)
@pytest.mark.parametrize("flags", [[], ["--top", "3"], ["--by", "stream"]])
def test_json_matches_the_schema(laggard, a, b, flags):
    found = json.loads(laggard("compare", "--json", "--no-index", *flags, a, b).stdout)
    jsonschema.validate(found, SCHEMA)


@pytest.mark.parametrize("path", [path.values[0] for path in REAL + GENERATED] or [None])
def test_trace_compared_with_itself_has_no_culprits(laggard, path):
    found = json.loads(laggard("compare", "--json", "--no-index", path, path).stdout)
    assert found["culprits"] == []
    assert found["whole"]["gap_ns"] == 0
    assert {row["gap_ns"] for row in found["findings"]} <= {0}
    assert not {row["verdict"] for row in found["findings"]} & {"slower", "faster", "only in A", "only in B"}
