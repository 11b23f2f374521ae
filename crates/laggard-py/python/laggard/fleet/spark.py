"""The Spark engine: one task per rank, and SQL for reports. All hosts must share the storage."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import EngineMissing, Error, UsageError
from . import store
from .engine import COLUMNS, VIEWS, question
from .ingest import Outcome, Task, ingest_one
from .show import visible

if TYPE_CHECKING:
    from .engine import OnDone, Row

#: Attempts per rank. A lost worker uses up one, and so does a worker without laggard.
ATTEMPTS = 4

#: Shuffle partitions per core. Few are enough, as the queries work on small aggregates.
SHUFFLE = 2


class Spark:
    """A Spark session, started on first use."""

    name = "spark"

    def __init__(self, master: str | None, worker_python: str | None):
        if not master:
            raise UsageError("--engine spark needs the address of the cluster", "give --master spark://HOST:7077")
        self._master = master
        self._worker_python = worker_python or sys.executable
        self._session: Any = None
        self._cached: list[Any] = []

    def ingest(self, tasks: list[Task], jobs: int | None, done: OnDone) -> None:
        """Runs one Spark task per rank. Spark repeats the tasks of a lost worker."""
        context = self._start().sparkContext
        try:
            outcomes = context.parallelize(tasks, len(tasks)).map(_on_worker).collect()
        except Exception as error:
            hint = f"install laggard for {self._worker_python} on every worker, or give another --worker-python"
            raise Error(f"ingest failed on the cluster: {_cause(error)}", hint) from error
        for outcome in outcomes:
            done(outcome)

    def open(self, fleet: Path, job: str, ranks: dict[int, Row]) -> None:
        """Creates temporary views over the Parquet files of these ranks."""
        session = self._start()
        if set("*?[]{}\\") & set(os.fspath(fleet)):
            raise UsageError(
                f"Spark interprets {fleet} as a pattern", "rename the directory without * ? [ ] { } and backslashes"
            )
        for cached in self._cached:
            cached.unpersist()
        self._cached = []
        columns = ", ".join(f"{name} {kind}" for name, kind in store.RANKS.items())
        rows = [(rank, *(_text(row.get(name)) for name in store.RANKS)) for rank, row in ranks.items()]
        session.createDataFrame(rows, f"rank bigint, {columns}").createOrReplaceTempView("ranks")
        for table, names in COLUMNS.items():
            paths = [os.fspath(store.part(fleet, table, job, rank).parent) for rank in ranks]
            read = session.read.option("basePath", os.fspath(fleet / table)).parquet(*paths)
            read.selectExpr("cast(rank as bigint) as rank", *names).createOrReplaceTempView(table)
        for view in VIEWS:
            made = session.sql(question("view_" + view)).cache()
            made.createOrReplaceTempView(view)
            self._cached.append(made)

    def query(self, sql: str) -> list[Row]:
        """Returns the rows of a query over the open job."""
        return [row.asDict() for row in self._start().sql(sql).collect()]

    def _start(self) -> Any:
        if self._session is not None:
            return self._session
        try:
            from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise EngineMissing("--engine spark needs pyspark", "pip install 'laggard[spark]'") from error
        java = os.environ.get("JAVA_HOME")
        if shutil.which("java") is None and not (java and (Path(java) / "bin" / "java").exists()):
            raise Error("Spark needs Java, which was not found", "install a Java 17 runtime, or set JAVA_HOME")
        os.environ["PYSPARK_PYTHON"] = self._worker_python
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if self._is_local():
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.task.maxFailures": str(ATTEMPTS),
            "spark.python.worker.reuse": "true",
            # Job names are strings, even if they look like dates.
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
        }
        try:
            builder = SparkSession.builder.master(self._master).appName("laggard fleet")
            for name, value in settings.items():
                builder = builder.config(name, value)
            self._session = builder.getOrCreate()
        except Exception as error:
            raise Error(f"cannot start a Spark session on {self._master}: {_cause(error)}") from error
        self._session.sparkContext.setLogLevel("ERROR")
        cores = max(1, self._session.sparkContext.defaultParallelism)
        self._session.conf.set("spark.sql.shuffle.partitions", str(SHUFFLE * cores))
        return self._session

    def _is_local(self) -> bool:
        return self._master.startswith("local") or "127.0.0.1" in self._master

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


def _on_worker(task: Task) -> Outcome:
    return ingest_one(task)


def _text(value: Any) -> Any:
    # Spark rejects lone surrogates, which occur in file names that are not valid UTF-8.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _cause(error: Exception) -> str:
    """Extracts the cause from a long message: the Python error of a worker, or the last Java cause."""
    lines = [line.strip() for line in str(error).splitlines()] or [type(error).__name__]
    in_python = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Missing|Interrupt)\b(:|$)", line)]
    causes = (re.match(r"(?:Caused by|): ?[\w.$]+(?:Exception|Error): (.+)", line) for line in lines)
    in_java = [found[1] for found in causes if found]
    return visible((in_python[:1] or in_java[-1:] or lines[:1])[0])[:500]
