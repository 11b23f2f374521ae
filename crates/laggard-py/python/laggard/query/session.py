"""A DuckDB connection with the tables of evidence. A query builds only the columns that it reads."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import EngineMissing, Error, UsageError
from .functions import macros
from .result import Result
from .statements import Statement, split
from .tables import UNREAD, quoted, text, united

if TYPE_CHECKING:
    from collections.abc import Callable

    from .sources import Source

T = TypeVar("T")

#: Schema of the internal tables: empty tables for planning, and results.
HOME = "laggard"
#: Prefix of the empty tables. It avoids names that are SQL keywords.
_PLAN = "plan_"

#: Optimizers enabled for planning: those that detect unused columns. Others are disabled because they read
#: columns that the plan does not list (filters pushed into scans) or use the fact that the tables are empty.
_PLANNING = {"unused_columns", "cte_inlining", "expression_rewriter", "deliminator", "unnest_rewriter"}

#: In earlier versions, the second scan of a registered Arrow table returns no rows.
_OLDEST = (1, 5)

#: Interval in seconds for checking Ctrl-C.
_PATIENCE = 0.05


def engine() -> Any:
    """Imports DuckDB, an optional dependency."""
    try:
        import duckdb
    except ImportError as error:
        raise EngineMissing("laggard query needs DuckDB", "pip install 'laggard[sql]'") from error
    if tuple(map(int, re.findall(r"\d+", duckdb.__version__)[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise EngineMissing(
            f"DuckDB {duckdb.__version__} is too old: {oldest} or later is required", f"pip install 'duckdb>={oldest}'"
        )
    return duckdb


class Session:
    """Runs SQL over evidence."""

    def __init__(self, sources: list[Source], threads: int | None = None):
        self._duckdb = engine()
        self.tables = united(sources)
        # DuckDB must not download extensions automatically.
        self._connection = self._duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self._answers = 0
        #: Names of the Arrow tables currently registered with DuckDB.
        self._registered: list[str] = []
        connection = self._connection
        if threads:
            connection.execute(f"set threads = {threads}")
        connection.execute(f"create schema {HOME}")
        for statement in macros():
            connection.execute(statement)
        optimisers = [name for (name,) in connection.execute("select name from duckdb_optimizers()").fetchall()]
        self._not_planning = ",".join(name for name in optimisers if name not in _PLANNING)
        for table in self.tables.values():
            fields = ", ".join(f"{quoted(name)} {type_}" for name, (type_, _) in table.columns.items())
            connection.execute(f"create table {HOME}.{_PLAN}{table.name} ({fields})")
            self._show(table.name, f"from {HOME}.{_PLAN}{table.name}")

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def run(self, sql: str) -> Result:
        """Runs all statements and returns the result of the last."""
        statements = self.statements(sql)
        if not statements:
            raise UsageError("the query is empty")
        for statement in statements[:-1]:
            self.answer(statement)
        return self.answer(statements[-1])

    def statements(self, sql: str) -> list[Statement]:
        """Splits a text into statements."""
        return [Statement(one, self._kind(one)) for one in split(sql)]

    def _kind(self, sql: str) -> str:
        parsed = self._said(sql, lambda: list(self._connection.extract_statements(sql)))
        return str(parsed[0].type).rsplit(".", 1)[-1] if len(parsed) == 1 else "MULTI"

    def answer(self, statement: Statement) -> Result:
        """Runs one statement and stores its result."""
        if statement.is_select:
            self._answers += 1
            name = f"{HOME}.answer_{self._answers}"
            self._run(statement, f"create table {name} as from ({statement.sql}\n)")
            return Result(self, self._connection.table(name))
        relation = self._run(statement, statement.sql)
        return Result(self, relation)

    def copy(self, statement: Statement, path: str, options: str, columns: str = "*") -> None:
        """Writes the result of one statement to a file without storing it."""
        if not statement.is_select:
            raise UsageError(
                "only the result of a select can be written in this format or to a file",
                "end the query with a select, or write the file with DuckDB's COPY … TO",
            )
        source = f"select {columns} from ({statement.sql}\n)"
        self._run(statement, f"copy ({source}) to {text(path)} ({options})")

    def types(self, statement: Statement) -> list[tuple[str, str]]:
        """Names and types of the columns of a select, without running it."""
        rows = self._said(
            statement.sql,
            lambda: self._connection.execute(f"describe from ({statement.sql}\n)").fetchall(),
        )
        return [(name, type_) for name, type_, *_ in rows]

    def _run(self, statement: Statement, sql: str) -> Any:
        """Runs `sql`, which contains the statement, with the columns that its plan needs. If the plan was
        incomplete, it runs again with all columns."""

        def run() -> Any:
            return self.waited(lambda: self._connection.sql(sql))

        self._reset()
        if statement.is_select:
            # Only binds the statement, so that errors refer to the user's own text.
            self._said(statement.sql, lambda: self._connection.sql(statement.sql))
        needed = self.needed(statement)
        self._provide(needed)
        if needed is None:
            return self._said(statement.sql, run)
        try:
            return run()
        except self._duckdb.Error as error:
            if UNREAD not in str(error):
                raise self._explained(error, statement.sql) from None
        self._provide(None)
        return self._said(statement.sql, run)

    def waited(self, work: Callable[[], T]) -> T:
        """Runs `work` on another thread so that Ctrl-C works: DuckDB itself does not handle it."""
        done = threading.Event()
        outcome: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                outcome.append(work())
            except BaseException as error:
                failure.append(error)
            finally:
                done.set()

        worker = threading.Thread(target=run, name="laggard-query", daemon=True)
        worker.start()
        try:
            while not done.wait(_PATIENCE):
                pass
        except KeyboardInterrupt:
            while not done.wait(_PATIENCE):  # repeated, as an interrupt between two stages of a query is lost
                self._connection.interrupt()
            raise
        if failure:
            raise failure[0]
        return outcome[0]

    def needed(self, statement: Statement) -> dict[str, set[str]] | None:
        """The columns that a statement reads, by table; None if its plan does not list them. Views must refer
        to the empty tables."""
        if statement.kind not in ("SELECT", "CREATE", "COPY", "INSERT"):
            return None
        connection = self._connection
        before = connection.execute("select current_setting('disabled_optimizers')").fetchone()[0]
        try:
            connection.execute(f"set disabled_optimizers = {text(self._not_planning)}")
            ((_, plan),) = connection.execute(f"explain (format json) {statement.sql}").fetchall()
            return self._read_by(json.loads(plan))
        except (self._duckdb.Error, ValueError, KeyError, TypeError):
            return None
        finally:
            connection.execute(f"set disabled_optimizers = {text(before or '')}")

    def _read_by(self, plan: Any) -> dict[str, set[str]]:
        """The columns read by the scans of a plan."""
        needed: dict[str, set[str]] = {}
        left = list(plan)
        while left:
            node = left.pop()
            left.extend(node["children"])
            info = node.get("extra_info")
            table = info.get("Table", "") if isinstance(info, dict) else ""
            _, home, name = str(table).rpartition(f"{HOME}.{_PLAN}")
            if not home:
                continue
            columns = info["Projections"]
            columns = [columns] if isinstance(columns, str) else columns
            read = {column for column in columns if column}
            if not read <= self.tables[name].columns.keys():
                raise ValueError(f"the plan reads {sorted(read)} of {name}")
            needed.setdefault(name, set()).update(read)
        return needed

    def _reset(self) -> None:
        """Points all views to the empty tables, on which queries are planned."""
        for name in self.tables:
            self._show(name, f"from {HOME}.{_PLAN}{name}")
        for name in self._registered:
            self._connection.unregister(name)
        self._registered.clear()

    def _provide(self, needed: dict[str, set[str]] | None) -> None:
        """Points all views to the tables of evidence. Columns are built when DuckDB scans them. Reading a column
        that is not in `needed` raises an error."""
        for table in self.tables.values():
            if needed is not None and table.name not in needed:
                self._show(table.name, table.unread())
                continue
            columns = set(table.columns) if needed is None else needed[table.name]
            for part in table.parts:
                self._connection.register(part.name, part.wanted(columns))
                self._registered.append(part.name)
            self._show(table.name, table.select(columns))

    def _show(self, name: str, select: str) -> None:
        self._connection.execute(f"create or replace view main.{quoted(name)} as {select}")

    def _said(self, sql: str, work: Callable[[], T]) -> T:
        """Runs `work` and converts DuckDB errors to errors with a hint."""
        try:
            return work()
        except self._duckdb.Error as error:
            raise self._explained(error, sql) from None

    def _explained(self, error: Exception, sql: str) -> Error:
        words = str(error).strip()
        return UsageError(words, self._hint(words, sql))

    def _hint(self, words: str, sql: str) -> str | None:
        if words.startswith("Catalog Error: Table"):
            if not self.tables:
                return "no files are loaded: laggard query SQL FILE"
            return f"tables: {', '.join(sorted(self.tables))}"
        if words.startswith("Binder Error") and ("not found" in words or "does not have a column" in words):
            mentioned = dict.fromkeys(re.findall(r"(?:\bfrom|\bjoin|,)\s+\"?(\w+)", sql.lower()))
            asked = [self.tables[name] for name in mentioned if name in self.tables]
            lists = [f"{table.name} has the columns {', '.join(table.columns)}" for table in asked]
            return "; ".join(lists) or None
        if words.startswith("Parser Error"):
            reserved = "select keyword_name from duckdb_keywords() where keyword_category = 'reserved'"
            words_of_sql = {name for (name,) in self._connection.execute(reserved).fetchall()}
            columns = {column for table in self.tables.values() for column in table.columns} | set(self.tables)
            used = sorted(words_of_sql & columns & set(re.findall(r"\w+", sql.lower())))
            if used:
                return f"quote names that are SQL keywords: {', '.join(map(quoted, used))}"
        return None
