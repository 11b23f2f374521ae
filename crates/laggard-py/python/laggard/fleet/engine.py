"""Engines for fleet work: DuckDB with a process pool on this machine, or a Spark cluster."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ..errors import EngineMissing, Error, UsageError
from . import store
from .ingest import Outcome, Task, ingest_one

#: Columns that reports read, by table. Every ingested file has them.
COLUMNS: dict[str, list[str]] = {
    "kernels": ["dur_ns", "name", "class", "class_group", "activity"],
    "collectives": ["start_ns", "dur_ns", "operation", "ordinal", "process_group", "group_ranks"],
    "steps": ["dur_ns"],
    "gaps": ["start_ns", "dur_ns", "device", "cause", "next", "next_op"],
    "devices": [
        "span_ns",
        "busy_ns",
        "idle_ns",
        "compute_ns",
        "exposed_communication_ns",
        "host_bound_ns",
    ],
}

#: Views shared by several queries, in order of dependency. They are computed once.
VIEWS = ("kinds", "arrivals", "waits", "work", "pace")

Row = dict[str, Any]
OnDone = Callable[[Outcome], None]


class Engine(Protocol):
    """Ingests traces and runs SQL."""

    @property
    def name(self) -> str:
        """Name of the engine."""

    def ingest(self, tasks: list[Task], jobs: int | None, done: OnDone) -> None:
        """Runs all tasks and calls `done` with the outcome of each."""

    def open(self, fleet: Path, job: str, ranks: dict[int, Row]) -> None:
        """Creates tables and views of these ranks, replacing those of an earlier call."""

    def query(self, sql: str) -> list[Row]:
        """Returns the rows of a query over the open ranks."""

    def __enter__(self) -> Engine: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def choose(engine: str = "duckdb", master: str | None = None, worker_python: str | None = None) -> Engine:
    """Creates an engine by name."""
    if engine == "spark":
        from .spark import Spark

        return Spark(master, worker_python)
    if engine != "duckdb":
        raise UsageError(f"unknown engine {engine!r}: use duckdb or spark")
    if master is not None or worker_python is not None:
        flag = "--master" if master is not None else "--worker-python"
        raise UsageError(f"{flag} requires --engine spark")
    return Duckdb()


def question(name: str) -> str:
    """Reads the SQL of a query, which is the same for all engines."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text(encoding="utf-8")


class Duckdb:
    """Runs on this machine: DuckDB for queries, a process pool for ingest."""

    name = "duckdb"

    def __init__(self) -> None:
        self._connection: Any = None

    def ingest(self, tasks: list[Task], jobs: int | None, done: OnDone) -> None:
        """Runs tasks in child processes, so that a trace that crashes its process is only reported as bad."""
        workers = min(len(tasks), jobs or _workers(tasks))
        left = set(tasks)

        def finished(task: Task, outcome: Outcome) -> None:
            left.discard(task)
            done(outcome)

        try:
            _pool(tasks, workers, finished)
        except BrokenProcessPool:
            # One trace crashed the pool. Running the remaining tasks one by one finds it.
            for task in [task for task in tasks if task in left]:
                try:
                    _pool([task], 1, finished)
                except BrokenProcessPool:
                    finished(task, Outcome(task.path, task.job, "bad", None, "the process that read it was killed"))

    def open(self, fleet: Path, job: str, ranks: dict[int, Row]) -> None:
        """Creates tables over the Parquet files of these ranks."""
        duckdb = _duckdb()
        if self._connection is not None:
            self._connection.close()
        self._connection = duckdb.connect()
        try:
            self._open(fleet, job, ranks)
        except duckdb.Error as error:
            lines = str(error).splitlines() or [""]
            raise Error(f"cannot read {fleet}: {lines[0]}", "run laggard fleet ingest again with --force") from error

    def _open(self, fleet: Path, job: str, ranks: dict[int, Row]) -> None:
        connection = self._connection
        types = {name: _DUCKDB_TYPES[kind] for name, kind in store.RANKS.items()} | {"rank": "BIGINT"}
        rows = [{"rank": rank, **{name: row.get(name) for name in store.RANKS}} for rank, row in ranks.items()]
        # DuckDB rejects lone surrogates, which occur in file names that are not valid UTF-8.
        text = json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace").decode()
        connection.execute(
            "create temp table ranks as select unnest(from_json($rows, $types), recursive := true)",
            {"rows": text, "types": json.dumps([types])},
        )
        for table, columns in COLUMNS.items():
            paths = [os.fspath(store.part(fleet, table, job, rank)) for rank in ranks]
            listed = ", ".join("'" + _no_glob(path).replace("'", "''") + "'" for path in paths)
            connection.execute(
                f"create temp view {table} as select cast(rank as bigint) as rank, {', '.join(columns)} "
                f"from read_parquet([{listed}], hive_partitioning = true, hive_types_autocast = false)"
            )
        for view in VIEWS:
            connection.execute(f"create temp table {view} as {question('view_' + view)}")

    def query(self, sql: str) -> list[Row]:
        """Returns the rows of a query over the open job."""
        found = self._connection.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row)) for row in found.fetchall()]

    def __enter__(self) -> Duckdb:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()


_DUCKDB_TYPES = {"string": "VARCHAR", "bigint": "BIGINT", "double": "DOUBLE"}


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise EngineMissing("laggard fleet needs DuckDB", "pip install 'laggard[sql]'") from error
    return duckdb


def _no_glob(path: str) -> str:
    """Escapes a path so that DuckDB does not interpret it as a glob pattern."""
    return re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", path)


def _pool(tasks: list[Task], workers: int, finished: Callable[[Task, Outcome], None]) -> None:
    # Not fork: a forked child would inherit locks held by threads that it does not have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_follow_parent) as pool:
        running = {pool.submit(ingest_one, task): task for task in tasks}
        try:
            for future in as_completed(running):
                finished(running[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _follow_parent() -> None:
    """Ignores Ctrl-C, which the parent handles, and exits when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _workers(tasks: Iterable[Task]) -> int:
    """The number of ranks to ingest in parallel: limited by CPUs and by memory for the largest trace."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    largest = max((_memory(Path(task.path)) for task in tasks), default=1)
    return max(1, min(cores, _available() // largest))


def _memory(path: Path) -> int:
    """Estimates the memory for loading a trace: three times its compressed size, or a fifth of its JSON size."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    return (64 << 20) + (size // 5 if path.name.endswith(".json") else size * 3)


def _available() -> int:
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        available = int(found[1]) << 10 if found else 4 << 30
    except OSError:
        available = 4 << 30
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        available = min(available, max(0, int(limit) - used)) if limit.isdigit() else available
    except OSError:
        pass
    return available * 3 // 4
