"""Busy times and launch operators of `laggard report` match those of a simple Python implementation."""

import json
from bisect import bisect_right
from collections import defaultdict
from decimal import Decimal

import pytest
from conftest import FIXTURES, name_of, real_traces, text_of

GENERATED = [FIXTURES / name for name in ("amd-native.json", "nvidia-compact.json", "decode.json", "ranks/rank1.json")]
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
RUNTIME = {"cuda_runtime", "cuda_driver", "Runtime"}
OPERATOR = {"cpu_op", "Operator"}
TRACES = pytest.mark.parametrize("path", [pytest.param(path, id=name_of(path)) for path in GENERATED + real_traces()])


def spans(path):
    """The spans of the trace, in integer nanoseconds."""
    trace = json.loads(text_of(path), parse_float=Decimal)
    for event in trace["traceEvents"]:
        if event.get("ph") == "X":
            start = int(Decimal(event["ts"]) * 1000)
            yield event, start, start + max(0, int(Decimal(event.get("dur", 0)) * 1000))


def union_length(intervals):
    total, end = 0, None
    for start, stop in sorted(intervals):
        if end is None or start > end:
            total += stop - start
            end = stop
        elif stop > end:
            total += stop - end
            end = stop
    return total


@TRACES
def test_device_busy_time_is_the_union_of_its_operations(laggard, path):
    work = defaultdict(list)
    for event, start, stop in spans(path):
        if event.get("cat") in DEVICE:
            work[str(event["args"].get("device", event["pid"]))].append((start, stop))
    report = json.loads(laggard("report", "--json", "--no-index", path).stdout)
    found = {row["device"]: (row["span_ns"], row["busy_ns"]) for row in report["devices"] if row["device"] in work}
    expected = {
        device: (max(stop for _, stop in rows) - min(start for start, _ in rows), union_length(rows))
        for device, rows in work.items()
    }
    assert found == expected


@TRACES
def test_kernels_are_attributed_to_the_operator_of_their_launch(laggard, path):
    launches, operators, kernels = {}, defaultdict(list), []
    for event, start, stop in spans(path):
        category, args = event.get("cat"), event.get("args") or {}
        if category in RUNTIME and "correlation" in args:
            launches.setdefault(args["correlation"], (event["pid"], str(event["tid"]), start))
        elif category in OPERATOR:
            operators[event["pid"], str(event["tid"])].append((start, stop, event["name"]))
        elif category in DEVICE:
            kernels.append((args.get("correlation"), stop - start))
    for rows in operators.values():
        rows.sort(key=lambda row: (row[0], -row[1]))
    starts = {track: [row[0] for row in rows] for track, rows in operators.items()}
    time = defaultdict(int)
    for correlation, duration in kernels:
        if correlation in launches:
            pid, tid, moment = launches[correlation]
            track = pid, tid
            time[innermost(operators[track], starts.get(track, []), moment)] += duration
    report = json.loads(laggard("report", "--json", "--no-index", "--by", "op", "--all", path).stdout)
    found = {row["name"]: row["time_ns"] for row in report["breakdowns"]["op"]["rows"]}
    # Operations without a recorded launch may be attributed by external id, so the report may have more time.
    for name, expected in time.items():
        if name is not None:
            assert found.get(name, 0) >= expected, name
    if kernels and all(correlation in launches for correlation, _ in kernels):
        assert {name: ns for name, ns in found.items() if ns} == {
            name or "(no operator)": ns for name, ns in time.items() if ns
        }


def innermost(rows, starts, moment):
    """The operator that started last among those running at `moment`."""
    for start, stop, name in reversed(rows[: bisect_right(starts, moment)]):
        if stop >= moment:
            return name
    return None
