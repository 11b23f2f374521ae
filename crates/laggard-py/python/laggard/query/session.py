"""A connection to the engine with the tables of evidence, of which a query makes no more than it needs."""

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

#: Where tables are that users do not name: empty ones that queries are planned on, and answers.
HOME = "laggard"
#: How names of empty tables begin, none of which is a word of SQL then.
_PLAN = "plan_"

#: Optimisers that a plan is made with: those that find out which columns nothing uses. No others, as some
#: read a column without saying so (filters inside a scan) or conclude from tables that are empty.
_PLANNING = {"unused_columns", "cte_inlining", "expression_rewriter", "deliminator", "unnest_rewriter"}

#: Before this a table that is handed over can be scanned once, and a second scan finds nothing.
_OLDEST = (1, 5)

#: Ctrl-C is answered within this many seconds.
_PATIENCE = 0.05


def engine() -> Any:
    """DuckDB, which is not ours to bring along."""
    try:
        import duckdb
    except ImportError as error:
        raise EngineMissing("queries need DuckDB", "pip install 'laggard[sql]'") from error
    if tuple(map(int, re.findall(r"\d+", duckdb.__version__)[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise EngineMissing(
            f"DuckDB {duckdb.__version__} is too old: queries need {oldest}", f"pip install 'duckdb>={oldest}'"
        )
    return duckdb


class Session:
    """Evidence that SQL is run over."""

    def __init__(self, sources: list[Source], threads: int | None = None):
        self._duckdb = engine()
        self.tables = united(sources)
        # What is not there is not fetched from the network behind the user's back.
        self._connection = self._duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self._answers = 0
        #: What is registered with the engine at the moment.
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
        """Ends it."""
        self._connection.close()

    # Running.

    def run(self, sql: str) -> Result:
        """Runs all statements; gives the answer of the last."""
        statements = self.statements(sql)
        if not statements:
            raise UsageError("there is no query")
        for statement in statements[:-1]:
            self.answer(statement)
        return self.answer(statements[-1])

    def statements(self, sql: str) -> list[Statement]:
        """The statements of a text."""
        return [Statement(one, self._kind(one)) for one in split(sql)]

    def _kind(self, sql: str) -> str:
        parsed = self._said(sql, lambda: list(self._connection.extract_statements(sql)))
        return str(parsed[0].type).rsplit(".", 1)[-1] if len(parsed) == 1 else "MULTI"

    def answer(self, statement: Statement) -> Result:
        """Runs one statement and keeps its answer."""
        if statement.is_select:
            self._answers += 1
            name = f"{HOME}.answer_{self._answers}"
            self._run(statement, f"create table {name} as from ({statement.sql}\n)")
            return Result(self, self._connection.table(name))
        relation = self._run(statement, statement.sql)
        return Result(self, relation)

    def copy(self, statement: Statement, path: str, options: str, columns: str = "*") -> None:
        """Writes the answer of one statement to a file, without keeping it."""
        if not statement.is_select:
            raise UsageError(
                "what is written to a file, or in this form, is the answer of a select",
                "end with a select; COPY … TO of DuckDB writes files too",
            )
        source = f"select {columns} from ({statement.sql}\n)"
        self._run(statement, f"copy ({source}) to {text(path)} ({options})")

    def types(self, statement: Statement) -> list[tuple[str, str]]:
        """Names and types of the columns of a select, which is not run."""
        rows = self._said(
            statement.sql,
            lambda: self._connection.execute(f"describe from ({statement.sql}\n)").fetchall(),
        )
        return [(name, type_) for name, type_, *_ in rows]

    def _run(self, statement: Statement, sql: str) -> Any:
        """Runs what is made of a statement with the columns that it needs, and with all if that was not so."""

        def run() -> Any:
            return self.waited(lambda: self._connection.sql(sql))

        self._reset()
        if statement.is_select:
            # This runs nothing, and what is wrong is said in the user's own text.
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
        """Does something on another thread: the engine does not answer Ctrl-C, and we do."""
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
            while not done.wait(_PATIENCE):  # an interrupt between two stages of a query is lost
                self._connection.interrupt()
            raise
        if failure:
            raise failure[0]
        return outcome[0]

    # Columns.

    def needed(self, statement: Statement) -> dict[str, set[str]] | None:
        """Columns that a statement reads, by table, where names stand for empty tables; none if its plan does
        not say."""
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
        """What the scans of a plan read."""
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
        """Makes empty tables what names stand for: queries are planned on these."""
        for name in self.tables:
            self._show(name, f"from {HOME}.{_PLAN}{name}")
        for name in self._registered:
            self._connection.unregister(name)
        self._registered.clear()

    def _provide(self, needed: dict[str, set[str]] | None) -> None:
        """Makes tables of evidence what their names stand for. Columns are made when the engine scans them, and
        what is not needed raises an error when something reads it after all."""
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

    # Errors.

    def _said(self, sql: str, work: Callable[[], T]) -> T:
        """Does something, and says what the engine says against it."""
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
                return "tables are those of files: give some, as in laggard query SQL FILE"
            return f"there are the tables {', '.join(sorted(self.tables))}"
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
                return f"columns that are called as words of SQL stand in quotes: {', '.join(map(quoted, used))}"
        return None
