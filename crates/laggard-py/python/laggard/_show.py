"""Tables for notebooks. Names in traces and profiles are untrusted, so all text is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._laggard import Table

ROWS = 10
LONGEST = 80


def table(of: Table) -> str:
    """Renders the first rows of a table as HTML."""

    def cell(value: object) -> str:
        if value is None:
            return "<td></td>"
        text = str(value)
        if len(text) > LONGEST:
            text = text[: LONGEST - 1] + "…"
        side = "left" if isinstance(value, str) else "right"
        return f'<td style="text-align: {side}">{escape(text)}</td>'

    head = "".join(f'<th title="{escape(about)}">{escape(name)}</th>' for name, _, about in of.schema)
    body = "".join(f"<tr>{''.join(map(cell, row.values()))}</tr>" for row in of.head(ROWS))
    about = f"{escape(of.name)}: {of.num_rows:,} rows; a row is {escape(of.about)}"
    return f"<table><caption>{about}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
