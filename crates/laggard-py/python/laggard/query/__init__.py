"""SQL over evidence: DuckDB is the engine, fed by Arrow without a copy, with the columns that a query needs."""

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
    """Runs SQL over files, or over evidence that is loaded already, and gives the answer of the last statement.

    >>> laggard.query("select class, sum(dur_ns) from kernels group by class", "trace.json.gz").to_polars()

    Several files are one table, with columns `file` and `rank`; directories stand for the traces in them.
    Columns that the query does not need are not made. `laggard query --schema` has all tables and columns.
    """
    from .session import Session
    from .sources import gathered

    session = Session(gathered(files, rules=rules, index=index, threads=threads), threads=threads)
    return session.run(sql)
