"""SQL functions over intervals, defined as DuckDB macros."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """A SQL macro with its description."""

    signature: str
    type: str
    about: str
    sql: str


#: The end of an interval. Negative durations count as zero, as in reports.
_END = "start_ns + greatest(dur_ns, 0)"
_KNOWN = "filter (where start_ns is not null and dur_ns is not null)"

# Sort the starts and the ends separately. The n-th end lies before start n + 1 exactly if all intervals that
# started by then have ended, so the time between them is idle. There are no other idle times.
_IDLE = f"""
    case when count(*) {_KNOWN} = 0 then null else coalesce(list_sum(list_transform(
        list_zip(
            list_sort(list(start_ns) {_KNOWN})[2:],
            list_sort(list({_END}) {_KNOWN})[:-2],
            true
        ),
        lambda pair: greatest(pair[1] - pair[2], 0)
    )), 0)::bigint end
"""

FUNCTIONS = [
    Function(
        "overlap_ns(start_a, dur_a, start_b, dur_b)",
        "bigint",
        "overlap of two intervals",
        "greatest(least(start_a + greatest(dur_a, 0), start_b + greatest(dur_b, 0)) - greatest(start_a, start_b), 0)",
    ),
    Function(
        "span_ns(start_ns, dur_ns)",
        "bigint",
        "aggregate: time from the first start to the last end",
        f"(max({_END}) {_KNOWN} - min(start_ns) {_KNOWN})",
    ),
    Function(
        "idle_ns(start_ns, dur_ns)",
        "bigint",
        "aggregate: part of the span not covered by any interval",
        _IDLE,
    ),
    Function(
        "busy_ns(start_ns, dur_ns)",
        "bigint",
        "aggregate: part of the span covered by at least one interval; rows with null are ignored",
        "(span_ns(start_ns, dur_ns) - idle_ns(start_ns, dur_ns))",
    ),
    Function("us(ns)", "double", "nanoseconds converted to microseconds", "ns / 1e3"),
    Function("ms(ns)", "double", "nanoseconds converted to milliseconds", "ns / 1e6"),
]


def macros() -> list[str]:
    """The SQL statements that define all functions."""
    return [f"create macro {function.signature} as {function.sql}" for function in FUNCTIONS]
