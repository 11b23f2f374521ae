"""Traces of many ranks: into Parquet once, then asked by SQL who keeps the others waiting.

>>> from laggard import fleet
>>> fleet.ingest("traces/", to="fleet/")
>>> answer = fleet.report("fleet/")
>>> answer.data["stragglers"]["stand_out"]
[17]
>>> print(fleet.compare("fleet/", a="before", b="after"))

On one machine DuckDB does the work; with `engine="spark", master="spark://host:7077"` a cluster does.
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
    """Turns each rank's trace into Parquet, partitioned by job and rank, below `to`.

    `traces` are files, and directories, each of which is a job. What is there already and has not
    changed is left, so that an ingest that was interrupted goes on where it was; bad files are in the
    result, with the reason. `tables` keeps more than reports need: launches, ops, python, annotations,
    memory. Ranks are read by processes of their own: in a script, call it below `if __name__ == "__main__":`.
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
    """Answers over all ranks of a job: stragglers, skew of collectives, gaps, hosts and GPUs that lag."""
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
    """What differs between two jobs, rank by rank: job `a` of `fleet`, which is the reference, and job `b`
    of `other`, or of the same directory."""
    from .report import compare as answer
    from .store import checked_place

    left = checked_place(fleet, "the directory")
    right = left if other is None else checked_place(other, "the directory")
    with _engine(engine, master, worker_python) as chosen:
        return answer(chosen, (left, a), (right, b))


class _Lent:
    """An engine that stays open: whoever made it closes it."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def __enter__(self) -> Engine:
        return self._engine

    def __exit__(self, *_: object) -> None:
        pass


def _engine(engine: str | Engine, master: str | None, worker_python: str | None) -> Engine | _Lent:
    return choose(engine, master, worker_python) if isinstance(engine, str) else _Lent(engine)
