"""Where a statement of SQL ends."""

from __future__ import annotations

import re

#: Texts, names and comments, closed or not: in none of these does a semicolon end a statement.
_PARTS = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*(?:.*?\*/|.*) )
    | (?P<text> '(?:[^']|'')*(?P<a>'?) | "(?:[^"]|"")*(?P<b>"?) | \$(?P<mark>\w*)\$(?:.*?(?P<c>\$(?P=mark)\$)|.*) )
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


def body(sql: str) -> str:
    """A statement without what ends it: semicolons, and comments behind it."""
    start = last = None
    for part in _PARTS.finditer(sql):
        if part["comment"] is None and part.lastgroup not in ("space", "end"):
            start = part.start() if start is None else start
            last = part.end()
    return sql[start or 0 : last or 0]
