"""Splits SQL text into statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Strings, quoted names and comments, terminated or not. A semicolon in these does not end a statement.
_PARTS = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*(?:.*?\*/|.*) )
    | (?P<text> '(?:[^']|'')*'? | "(?:[^"]|"")*"? | \$(?P<mark>\w*)\$(?:.*?\$(?P=mark)\$|.*) )
    | (?P<end> ; )
    | (?P<space> \s+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def is_complete(sql: str) -> bool:
    """Whether the last statement ends with a semicolon."""
    ended = False
    for part in _PARTS.finditer(sql):
        kind = part.lastgroup
        if part["comment"] is not None:
            if part["comment"].startswith("/*") and not part["comment"].endswith("*/"):
                return False
        elif part["text"] is not None:
            ended = False
        elif kind != "space":
            ended = kind == "end"
    return ended


@dataclass(frozen=True)
class Statement:
    """A statement without its semicolon."""

    sql: str
    #: DuckDB's statement type: `SELECT`, `CREATE`, … `MULTI` if DuckDB expands it to several statements.
    kind: str

    @property
    def is_select(self) -> bool:
        """Whether it returns rows and has no side effects."""
        # DuckDB expands a pivot to several statements, the last of which is a select.
        return self.kind in ("SELECT", "MULTI") and not self.sql.lower().startswith(("explain", "pragma"))


def split(sql: str) -> list[str]:
    """Splits a text into statements, without semicolons and surrounding comments."""
    found = []
    start: int | None = None
    last = 0
    for part in _PARTS.finditer(sql):
        if part["comment"] is None and part.lastgroup == "end":
            if start is not None:
                found.append(sql[start:last])
            start = None
        elif part["comment"] is None and part.lastgroup != "space":
            start = part.start() if start is None else start
            last = part.end()
    if start is not None:
        found.append(sql[start:last])
    return found
