"""Statements of SQL: where each begins and ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Texts, names and comments, closed or not: in none of these does a semicolon end a statement.
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
    """Whether the last statement has ended."""
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
    """A statement, without what ends it."""

    sql: str
    #: As the engine calls it: `SELECT`, `CREATE`, … `MULTI` is one that it makes several of.
    kind: str

    @property
    def is_select(self) -> bool:
        """Whether it gives rows and does nothing else."""
        # A pivot reads its values first: the engine makes several statements of it, of which the last is a select.
        return self.kind in ("SELECT", "MULTI") and not self.sql.lower().startswith(("explain", "pragma"))


def split(sql: str) -> list[str]:
    """The statements of a text, without semicolons between them and comments around them."""
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
