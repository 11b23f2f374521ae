"""Functions over intervals, beside DuckDB's own, as macros of its SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """A macro, and what it is for."""

    signature: str
    type: str
    about: str
    sql: str


#: The end of an interval; a negative duration counts as none, as in reports.
_END = "start_ns + greatest(dur_ns, 0)"
_KNOWN = "filter (where start_ns is not null and dur_ns is not null)"

# Sort all starts, and all ends by themselves. The n-th end lies before the start n + 1 exactly where all
# intervals that have begun by then have ended: that stretch is idle, and there are no others.
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
        "how long two intervals overlap",
        "greatest(least(start_a + greatest(dur_a, 0), start_b + greatest(dur_b, 0)) - greatest(start_a, start_b), 0)",
    ),
    Function(
        "span_ns(start_ns, dur_ns)",
        "bigint",
        "aggregate: from the start of the first interval to the end of the last",
        f"(max({_END}) {_KNOWN} - min(start_ns) {_KNOWN})",
    ),
    Function(
        "idle_ns(start_ns, dur_ns)",
        "bigint",
        "aggregate: the part of that span which no interval covers",
        _IDLE,
    ),
    Function(
        "busy_ns(start_ns, dur_ns)",
        "bigint",
        "aggregate: the part which intervals cover, each moment counted once; rows with a null do not count",
        "(span_ns(start_ns, dur_ns) - idle_ns(start_ns, dur_ns))",
    ),
    Function("us(ns)", "double", "nanoseconds as microseconds", "ns / 1e3"),
    Function("ms(ns)", "double", "nanoseconds as milliseconds", "ns / 1e6"),
]


def macros() -> list[str]:
    """The statements that make them."""
    return [f"create macro {function.signature} as {function.sql}" for function in FUNCTIONS]
