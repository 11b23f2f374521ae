"""Concatenates the tables of several files by name and adds the columns `file` and `rank`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .. import _laggard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .sources import Source

FILE, RANK = "file", "rank"

ADDED = [
    (FILE, "varchar", "input file, as given"),
    (RANK, "bigint", "rank in a distributed job; null if unknown"),
]


def columns(table: _laggard.Table) -> list[tuple[str, str, str]]:
    """Name, SQL type and description of each column; added columns come first."""
    return ADDED + [column for column in table.schema if column[0] != RANK]


def quoted(name: str) -> str:
    """Quotes a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Converts a string to a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


@dataclass
class Part:
    """A table of one file."""

    source: Source
    table: _laggard.Table
    #: The name under which it is registered with DuckDB.
    name: str

    def wanted(self, names: Iterable[str]) -> _laggard.Table:
        """The table restricted to these columns. Counting rows needs a column too, so at least one is kept."""
        own = self.table.column_names
        chosen = [name for name in names if name in own and name != RANK]
        return self.table.select(chosen or [self._cheapest()])

    def _cheapest(self) -> str:
        numbers = [name for name, type_, _ in self.table.schema if type_ == "bigint"]
        times = [name for name in ("dur_ns", "ts_ns") if name in numbers]
        return (times or numbers or self.table.column_names)[0]

    def rank(self) -> int | None:
        """The rank of the trace; None if unknown."""
        if self.source.evidence.kind != "trace":
            return None
        rank = self.source.evidence.table("run").select(["rank"]).head(1)[0]["rank"]
        return None if rank is None else int(rank)


@dataclass
class United:
    """A SQL table: the tables of one name from all files."""

    name: str
    about: str
    #: Type and description by name.
    columns: dict[str, tuple[str, str]] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    def select(self, needed: set[str]) -> str:
        """SQL for its rows. Reading a column that is not in `needed` raises an error."""
        selects = []
        for part in self.parts:
            own = part.table.column_names
            fields = []
            for name, (type_, _) in self.columns.items():
                if name == FILE:
                    value = f"{text(part.source.file)}::varchar"
                elif name not in needed and (name == RANK or name in own):
                    value = f"error({text(UNREAD)})::{type_}"
                elif name == RANK:
                    rank = part.rank()
                    value = f"{'null' if rank is None else rank}::bigint"
                elif name in own:
                    value = quoted(name)
                else:
                    value = f"null::{type_}"
                fields.append(f"{value} as {quoted(name)}")
            selects.append(f"select {', '.join(fields)} from {part.name}")
        return " union all ".join(selects)

    def unread(self) -> str:
        """SQL for a table that raises an error when it is read."""
        fields = ", ".join(f"null::{type_} as {quoted(name)}" for name, (type_, _) in self.columns.items())
        return f"select {fields} from range(1) where error({text(UNREAD)})::boolean"


#: The error of a column that was read although the plan did not need it.
UNREAD = "laggard: this column was not read"


def united(sources: list[Source]) -> dict[str, United]:
    """Groups the tables of all sources by name."""
    found: dict[str, United] = {}
    for place, source in enumerate(sources):
        for name, table in source.evidence.tables.items():
            one = found.setdefault(name, United(name, table.about))
            for column, type_, about in columns(table):
                one.columns.setdefault(column, (type_, about))
            one.parts.append(Part(source, table, f"laggard_{place}_{name}"))
    return found
