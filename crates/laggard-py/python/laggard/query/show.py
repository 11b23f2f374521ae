"""Formats results as text and HTML. Names in traces and profiles are untrusted: control characters are escaped."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import Any

#: Table width if the output is not a terminal.
WIDTH = 100
HTML_ROWS = 20

_NARROWEST = 8
_RULE = "─"
#: Unicode categories to escape: control and format characters, surrogates, private use, unassigned, line ends.
_OBEYED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def table(names: list[str], rows: list[tuple[Any, ...]], more: int = 0, width: int | None = None) -> str:
    """Formats a table with numbers aligned right. If it is too wide, the middle of long texts is cut, and columns
    that do not fit are listed below the table."""
    numeric = [any(is_number(row[at]) for row in rows) for at in range(len(names))]
    cells = [[printable(name) for name in names], *[[cell(value) for value in row] for row in rows]]
    widths = [max(columns_of(line[at]) for line in cells) for at in range(len(names))]
    shown = len(names)
    if width is not None:
        widths, shown = _fitted(widths, numeric, width)
    lines = []
    for number, line in enumerate(cells):
        parts = []
        for at in range(shown):
            value = shortened(line[at], widths[at])
            space = " " * (widths[at] - columns_of(value))
            parts.append(space + value if numeric[at] else value + space)
        lines.append("  ".join(parts).rstrip())
        if number == 0:
            lines.append("  ".join(_RULE * widths[at] for at in range(shown)))
    notes = []
    if more:
        notes.append(f"{more:,} more row{'s' if more > 1 else ''}")
    if shown < len(names):
        notes.append(f"not shown: {', '.join(cells[0][shown:])}")
    if notes:
        lines.append(f"({'; '.join(notes)})")
    return "\n".join(lines) + "\n"


def _fitted(widths: list[int], numeric: list[bool], width: int) -> tuple[list[int], int]:
    """Column widths that fit, and the number of columns that fit."""
    widths = list(widths)

    def excess(count: int) -> int:
        return sum(widths[:count]) + 2 * (count - 1) - width

    shown = len(widths)
    while shown > 1:
        least = sum(size if right else min(size, _NARROWEST) for size, right in zip(widths[:shown], numeric))
        if least + 2 * (shown - 1) <= width:
            break
        shown -= 1
    while excess(shown) > 0:
        texts = [at for at in range(shown) if not numeric[at] and widths[at] > _NARROWEST]
        if not texts:
            break
        widest = max(texts, key=lambda at: widths[at])
        widths[widest] -= 1
    return widths, shown


def is_number(value: Any) -> bool:
    """Whether a value is aligned right."""
    from decimal import Decimal

    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def cell(value: Any) -> str:
    """Formats one value. Integers are exact; floats have six significant digits, or all integer digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.1f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"
    return printable(str(value))


def printable(text: str) -> str:
    """Escapes characters that a terminal would interpret."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _OBEYED else char for char in text
    )


def columns_of(text: str) -> int:
    """The width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)


def shortened(text: str, width: int) -> str:
    """Cuts the middle of a text that is too long."""
    if columns_of(text) <= width:
        return text
    head = (width - 1) // 2
    start, end = text[:head], text[len(text) - (width - 1 - head) :]
    while columns_of(start) + columns_of(end) + 1 > width:
        start, end = (start[:-1], end) if len(start) >= len(end) else (start, end[1:])
    return f"{start}…{end}"


def html(names: list[str], rows: list[tuple[Any, ...]], count: int) -> str:
    """Formats the first rows as HTML for a notebook."""

    def field(value: Any) -> str:
        side = "right" if is_number(value) else "left"
        return f'<td style="text-align: {side}">{escape(shortened(cell(value), 80))}</td>'

    head = "".join(f"<th>{escape(printable(name))}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(field, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{count:,} row{'s' if count != 1 else ''}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
