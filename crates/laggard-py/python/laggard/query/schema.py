"""The schema: tables, columns and functions with their descriptions."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from .. import _laggard
from .functions import FUNCTIONS
from .tables import ADDED, columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .tables import United

NAMES = ["kind", "table", "column", "type", "about"]

Row = tuple[str, str, str, str, str]


def rows(kinds: Iterable[str] | None = None) -> list[Row]:
    """Kind, table, column, type and description of all columns, followed by the functions."""
    wanted = None if kinds is None else set(kinds)
    found: list[Row] = []
    for kind, table in _laggard.schemas():
        # A verdict has the tables of a benchmark.
        if wanted is None or kind in wanted or (kind == "bench" and "verdict" in wanted):
            found.append((kind, table.name, "", "table", table.about))
            found.extend((kind, table.name, *column) for column in columns(table))
    found.extend(("", "", one.signature, one.type, one.about) for one in FUNCTIONS)
    return found


def text(kinds: Iterable[str] | None = None, width: int = 100) -> str:
    """The schema as text. Columns common to all tables are printed once."""
    added = {name for name, _, _ in ADDED}
    lines = ["Columns of every table"]
    lines += _lines([(name, type_, about) for name, type_, about in ADDED], width)
    table: list[tuple[str, str, str]] = []
    of = ("", "")
    for kind, name, column, type_, about in [*rows(kinds), ("", "", "", "", "")]:
        if (kind, name) != of:
            lines += _lines(table, width)
            table, of = [], (kind, name)
            if kind:
                lines += ["", f"{name} ({kind}): a row is {about}"]
                continue
            if column:
                lines += ["", "Functions in addition to those of DuckDB"]
        if column and not (kind and column in added):
            table.append((column, type_, about))
    return "\n".join([*lines, *_lines(table, width)]) + "\n"


def of_table(table: United, width: int = 100) -> str:
    """The columns of one loaded table."""
    columns = [(name, type_, about) for name, (type_, about) in table.columns.items()]
    return "\n".join([f"{table.name}: a row is {table.about}", *_lines(columns, width)]) + "\n"


def of_tables(tables: Iterable[United], width: int = 100) -> str:
    """The loaded tables."""
    return "\n".join(_lines([(table.name, "", table.about) for table in tables], width)) + "\n"


def _lines(columns: list[tuple[str, str, str]], width: int) -> list[str]:
    if not columns:
        return []
    name_width = max(len(name) for name, _, _ in columns)
    type_width = max(len(type_) for _, type_, _ in columns)
    start = 2 + name_width + 2 + (type_width + 2 if type_width else 0)
    lines = []
    for name, type_, about in columns:
        head = f"  {name:<{name_width}}  {type_:<{type_width}}".rstrip().ljust(start)
        lines += textwrap.wrap(about, max(width, start + 20), initial_indent=head, subsequent_indent=" " * start)
    return lines
