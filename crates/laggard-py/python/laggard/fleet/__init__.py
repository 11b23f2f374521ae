"""Analysis of traces of many ranks: convert them to Parquet once, then find stragglers with SQL.

>>> from laggard import fleet
>>> fleet.ingest("traces/", to="fleet/")
>>> answer = fleet.report("fleet/")
>>> answer.data["stragglers"]["stand_out"]
[17]
>>> print(fleet.compare("fleet/", a="before", b="after"))

The default engine is DuckDB on this machine; `engine="spark", master="spark://host:7077"` uses a Spark cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from .engine import Engine, choose
from .ingest import Outcome
from .report import Answer
from .run import Ingested

__all__ = ["Answer", "Engine", "Ingested", "Outcome", "choose", "compare", "ingest", "report"]

Place = str | os.PathLike[str]


def ingest(
    *traces: Place,
    to: Place,
    job: str | None = None,
    tables: Sequence[str] = (),
    rules: Place | None = None,
    jobs: int | None = None,
    force: bool = False,
    engine: str | Engine = "duckdb",
    master: str | None = None,
    worker_python: str | None = None,
    progress: Callable[[int, int, Outcome], None] | None = None,
) -> Ingested:
    """Converts the trace of each rank to Parquet files in `to`, partitioned by job and rank.

    `traces` are files or directories. Each directory is a job. Unchanged traces that were ingested
    before are skipped, so an interrupted ingest can be resumed. Bad files are listed in the result
    with the reason. `tables` are additional tables to keep: launches, ops, python, annotations,
    memory. Traces are read in child processes: in a script, call this function under
    `if __name__ == "__main__":`.
    """
    from .run import run

    with _engine(engine, master, worker_python) as chosen:
        return run(chosen, traces, to, job, tables, rules, jobs, force, progress)


def report(
    fleet: Place,
    job: str | None = None,
    *,
    engine: str | Engine = "duckdb",
    master: str | None = None,
    worker_python: str | None = None,
) -> Answer:
    """Reports on all ranks of a job: stragglers, skew of collectives, idle gaps, slow hosts and GPUs."""
    from .report import report as answer
    from .store import checked_place

    with _engine(engine, master, worker_python) as chosen:
        return answer(chosen, checked_place(fleet, "the directory"), job)


def compare(
    fleet: Place,
    other: Place | None = None,
    *,
    a: str | None = None,
    b: str | None = None,
    engine: str | Engine = "duckdb",
    master: str | None = None,
    worker_python: str | None = None,
) -> Answer:
    """Compares two jobs rank by rank: job `b` of `other` (default: `fleet`) with job `a` of `fleet`, the
    reference."""
    from .report import compare as answer
    from .store import checked_place

    left = checked_place(fleet, "the directory")
    right = left if other is None else checked_place(other, "the directory")
    with _engine(engine, master, worker_python) as chosen:
        return answer(chosen, (left, a), (right, b))


class _Lent:
    """Wraps an engine of the caller so that it is not closed here."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def __enter__(self) -> Engine:
        return self._engine

    def __exit__(self, *_: object) -> None:
        pass


def _engine(engine: str | Engine, master: str | None, worker_python: str | None) -> Engine | _Lent:
    return choose(engine, master, worker_python) if isinstance(engine, str) else _Lent(engine)
