"""SQL over evidence with DuckDB, which scans Arrow tables without copying and reads only the columns it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .result import Result

if TYPE_CHECKING:
    import os

    from ..evidence import Evidence

__all__ = ["Result", "query"]


def query(
    sql: str,
    *files: str | os.PathLike[str] | Evidence,
    rules: str | os.PathLike[str] | None = None,
    index: bool = True,
    threads: int | None = None,
) -> Result:
    """Runs SQL over files or loaded evidence and returns the result of the last statement.

    >>> laggard.query("select class, sum(dur_ns) from kernels group by class", "trace.json.gz").to_polars()

    Tables of several files are concatenated, with the columns `file` and `rank`. A directory stands for the
    traces in it. Only the columns that the query reads are built. `laggard query --schema` lists all tables
    and columns.
    """
    from .session import Session
    from .sources import gathered

    session = Session(gathered(files, rules=rules, index=index, threads=threads), threads=threads)
    return session.run(sql)
